#include <zkasio/locks/detail/slot_rest.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

namespace zkasio::lock_detail {
namespace {

constexpr std::string_view used_prefix = "used-";

}  // namespace

std::optional<std::uint32_t> slot_of(std::string_view name, std::uint32_t n) noexcept {
    std::uint32_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [parsed, failed] = std::from_chars(name.data(), end, number);
    if (failed != std::errc() || parsed != end || number >= n) return std::nullopt;
    if (name.size() > 1 && name.front() == '0') return std::nullopt;
    return number;
}

std::string used_name(std::uint32_t slot) { return std::string(used_prefix) + std::to_string(slot); }

std::vector<free_slot> free_slots(const std::vector<std::string>& children, std::uint32_t n) {
    std::vector<bool> held(n), used(n);
    for (const std::string& name : children) {
        if (const auto number = slot_of(name, n))
            held[*number] = true;
        else if (const auto before = slot_of(std::string_view(name).substr(0, used_prefix.size()) == used_prefix
                                                 ? std::string_view(name).substr(used_prefix.size())
                                                 : std::string_view(),
                                             n))
            used[*before] = true;
    }
    std::vector<free_slot> all;
    for (std::uint32_t number = 0; number < n; ++number) {
        if (held[number]) continue;
        all.push_back({number, used[number]});
    }
    return all;
}

void spread(std::vector<free_slot>& free, unsigned refusals, std::uint64_t random) {
    constexpr unsigned most_refusals = 8;  // 4 to the power of it: slots::most
    const std::size_t among = std::min(free.size(), std::size_t(1) << 2 * std::min(refusals, most_refusals));
    if (among < 2) return;
    const auto first = static_cast<std::ptrdiff_t>(random % among), end = static_cast<std::ptrdiff_t>(among);
    std::rotate(free.begin(), free.begin() + first, free.begin() + end);
}

std::string slot_spec::node_of(std::uint32_t number) const {
    return is_node ? path : join_path(path, std::to_string(number));
}
std::string slot_spec::record_of(std::uint32_t number) const { return join_path(path, used_name(number)); }

namespace {

using std::chrono::milliseconds;

constexpr const char* held = "held";
constexpr const char* rests = "rests";
// A rest that ends sooner is not remembered: it may be over when the next look reaches the servers, and only they know.
constexpr milliseconds least_remembered(10);

create_options ephemeral_with(const acl& entries) {
    create_options how;
    how.mode(create_mode::ephemeral).acl(entries);
    return how;
}

create_options persistent_record(const acl& entries) {
    create_options how;
    how.acl(entries);
    return how;
}

asio::awaitable<milliseconds> servers_time(session on, slot_spec spec) {
    const create_options how = persistent_record(spec.entries);
    const std::string path = join_path(spec.path, std::string(slot_clock_name));
    auto write = [&]() -> asio::awaitable<std::int64_t> {
        const node_stat now = co_await on.create_or_set(path, bytes(), how);
        // Created, at servers that answer without a stat, and gone before it could be asked for.
        if (now.czxid == 0) throw error(zk_errc::connection_loss, "create_or_set", path, "no stat has come");
        co_return now.mtime;
    };
    const std::int64_t now = co_await retry_until_certain(toolbox(on).make_back_off(), write);
    co_return milliseconds(now);
}

// False: the number is held after all, or another client has changed its record.
asio::awaitable<bool> begin_rest(session on, slot_spec spec, std::uint32_t number, std::int32_t record) {
    auto begin = [&]() -> asio::awaitable<void> {
        transaction steps;
        const std::string node = spec.node_of(number);
        steps.create(node, bytes(), ephemeral_with(spec.entries)).remove(node);
        steps.set(spec.record_of(number), rests, record);
        co_await on.multi(std::move(steps));
    };
    try {
        co_await retry_until_certain(toolbox(on).make_back_off(), begin);
    } catch (const error& e) {
        if (e.code() != zk_errc::node_exists && e.code() != zk_errc::bad_version && e.code() != zk_errc::no_node) throw;
        co_return false;
    }
    co_return true;
}

// The records of the numbers that were used before; nothing where there is none. One round trip.
asio::awaitable<std::vector<std::optional<node_data>>> read_records(session on, slot_spec spec,
                                                                    std::vector<free_slot> free) {
    std::vector<std::optional<node_data>> records;
    auto read = [&]() -> asio::awaitable<void> {
        records.assign(free.size(), std::nullopt);
        std::vector<std::string> paths;
        for (const free_slot& slot : free)
            if (slot.used_before) paths.push_back(spec.record_of(slot.number));
        const std::vector<pending_data> asked = toolbox(on).start_gets(std::move(paths));
        auto next = asked.begin();
        for (std::size_t i = 0; i < free.size(); ++i)
            if (free[i].used_before) records[i] = co_await if_exists((next++)->result());
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), read);
    co_return records;
}

}  // namespace

asio::awaitable<slot_offers> rested_slots(session on, slot_spec spec, std::shared_ptr<local_slots> local,
                                          std::vector<free_slot> free, std::optional<milliseconds>& now) {
    slot_offers offers;
    const std::vector<std::optional<node_data>> records = co_await read_records(on, spec, free);
    for (std::size_t i = 0; i < free.size(); ++i) {
        slot_offer offer;
        offer.number = free[i].number;
        milliseconds left(0);
        if (const std::optional<node_data>& record = records[i]) {
            if (record->data == held) {
                const bool begun = co_await begin_rest(on, spec, offer.number, record->stat.version);
                // Other clients look at the same numbers: they may begin all these rests as well.
                if (!begun) {
                    offers.outdated = true;
                    co_return offers;
                }
                left = spec.quiet;
            } else {
                if (!now) now = co_await servers_time(on, spec);
                left = milliseconds(record->stat.mtime) + spec.quiet - *now;
            }
            offer.record = record->stat.version;
        }
        if (left > milliseconds(0)) {
            if (left > least_remembered) local->set_rest(offer.number, boot_clock::after(any_duration(left)));
            offers.next = std::min(offers.next.value_or(left), left);
        } else {
            offers.now.push_back(offer);
        }
    }
    co_return offers;
}

asio::awaitable<std::int64_t> create_with_record(session on, slot_spec spec, slot_offer offer) {
    const std::string record = spec.record_of(offer.number);
    transaction steps;
    steps.create(spec.node_of(offer.number), spec.data, ephemeral_with(spec.entries));
    if (!offer.record) steps.create(record, bytes(), persistent_record(spec.entries));
    steps.set(record, held, offer.record.value_or(0));
    const std::vector<step_result> results = co_await on.multi(std::move(steps));
    co_return results.back().new_stat->mzxid;  // the zxid of the transaction, and so the node's czxid
}

asio::awaitable<void> remove_with_record(session on, slot_spec spec, std::uint32_t number, std::int64_t czxid) {
    const std::string path = spec.node_of(number), record = spec.record_of(number);
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        // In this order: while the node is ours, no other client changes the record.
        const std::optional<node_data> now = co_await if_exists(on.get(record));
        const std::optional<node_stat> there = co_await newest_stat(on, path);
        if (!there || there->czxid != czxid) co_return;
        transaction steps;
        steps.remove(path);
        if (now)
            steps.set(record, rests, now->stat.version);
        else
            steps.create(record, rests, persistent_record(spec.entries));
        try {
            co_await on.multi(std::move(steps));
            co_return;
        } catch (const error& e) {
            // An operator has removed or written the record, or the node.
            const bool other =
                e.code() == zk_errc::no_node || e.code() == zk_errc::bad_version || e.code() == zk_errc::node_exists;
            if (!other && e.code() != condition::retryable) throw;
        }
        co_await pauses.pause();
    }
}

}  // namespace zkasio::lock_detail
