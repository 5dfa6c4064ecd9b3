#include <zkasio/detail/requests/background_work.hpp>

#include <algorithm>
#include <cassert>

namespace zkasio::detail {

// The invariants: true except while a member function runs.
void background_work::check() const noexcept {
    assert(!generations_.empty());
    assert(generations_.size() == 1 || generations_[generations_.size() - 2].over);
    assert(!generations_.back().over || generations_.back().over->done);
}

background_work::piece background_work::begin() noexcept {
    ++generations_.back().pieces;
    return {*this, first_ + generations_.size() - 1};
}

bool background_work::any() const noexcept {
    return std::any_of(generations_.begin(), generations_.end(), [](const generation& g) { return g.pieces > 0; });
}

one_shot_ptr background_work::over() {
    generation& last = generations_.back();
    if (last.pieces == 0 && generations_.size() > 1)  // nothing has begun since the last call
        return generations_[generations_.size() - 2].over;
    const auto over = last.over = std::make_shared<one_shot_state>();
    if (last.pieces == 0 || ended_)
        waits_.fire(over, ended_);
    else
        generations_.emplace_back();
    check();
    return over;
}

void background_work::end_all(std::error_code code) {
    ended_ = code;
    for (generation& g : generations_)
        if (const one_shot_ptr over = g.over) waits_.fire(over, code);
}

void background_work::end(std::uint64_t number) noexcept {
    generation& of = generations_[static_cast<std::size_t>(number - first_)];
    assert(of.pieces > 0);
    --of.pieces;
    while (generations_.size() > 1 && generations_.front().pieces == 0) {
        const one_shot_ptr over = std::move(generations_.front().over);
        generations_.pop_front();
        ++first_;
        check();
        waits_.fire(over);
    }
}

}  // namespace zkasio::detail
