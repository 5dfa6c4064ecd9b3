#include <zkasio/detail/connection/own_frames.hpp>

#include <zkasio/detail/connection/c_conversions.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace zkasio::detail {
namespace {

constexpr std::int32_t get_opcode = 4, children_opcode = 8, failure_opcode = -1;
constexpr std::int32_t no_version = -1, any_watch = 3;

// ------------------------------------------------------------------------------------------------------- requests

class frame_writer {
public:
    explicit frame_writer(std::string_view chroot) : chroot_(chroot) { number(0); }

    frame_writer& number(std::int32_t v) {
        const auto bits = static_cast<std::uint32_t>(v);
        for (int shift = 24; shift >= 0; shift -= 8) out_ += static_cast<char>((bits >> shift) & 0xff);
        return *this;
    }
    frame_writer& boolean(bool v) {
        out_ += static_cast<char>(v);
        return *this;
    }
    /// A path of the client, as the server knows it.
    frame_writer& path(std::string_view p) {
        if (p == "/" && !chroot_.empty()) p = {};
        number(static_cast<std::int32_t>(chroot_.size() + p.size()));
        (out_ += chroot_) += p;
        return *this;
    }
    /// In front of each step, and behind the last.
    frame_writer& step(std::int32_t opcode, bool is_end) { return number(opcode).boolean(is_end).number(no_version); }

    std::string take() {
        const auto length = static_cast<std::uint32_t>(out_.size() - 4);
        for (std::size_t i = 0; i < 4; ++i) out_[i] = static_cast<char>((length >> (24 - 8 * i)) & 0xff);
        return std::move(out_);
    }

private:
    std::string_view chroot_;
    std::string out_;
};

void write_body(frame_writer& to, const multi_read_request& r) {
    for (const read_op& op : r.reads) {
        to.step(std::holds_alternative<get_request>(op) ? get_opcode : children_opcode, false);
        std::visit([&to](const auto& step) { to.path(step.path).boolean(false); }, op);
    }
    to.step(failure_opcode, true);
}
void write_body(frame_writer&, const who_am_i_request&) {}
void write_body(frame_writer& to, const ephemerals_request& r) { to.path(r.path); }
void write_body(frame_writer& to, const count_below_request& r) { to.path(r.path); }
void write_body(frame_writer& to, const add_watch_request& r) { to.path(r.path).number(r.recursive ? 1 : 0); }
void write_body(frame_writer& to, const remove_added_watch_request& r) { to.path(r.path).number(any_watch); }

template <class Row>
concept own_row = requires { Row::opcode; };

// -------------------------------------------------------------------------------------------------------- answers

/// Reads from the front. A value that is not there in whole, or cannot be, reads as nothing, as do all that follow.
class frame_reader {
public:
    explicit frame_reader(std::span<const char> bytes) : rest_(bytes) {}

    bool failed() const noexcept { return failed_; }
    std::size_t left() const noexcept { return rest_.size(); }

    std::int32_t number() { return static_cast<std::int32_t>(static_cast<std::uint32_t>(big_endian(4))); }
    std::int64_t long_number() { return static_cast<std::int64_t>(big_endian(8)); }
    bool boolean() { return big_endian(1) != 0; }
    /// A string or a buffer; the length -1 stands for none.
    std::string_view text() {
        const std::span<const char> bytes = take(length_of(1));
        return {bytes.data(), bytes.size()};
    }
    /// How many elements follow, each of which has at least so many bytes.
    std::size_t count(std::size_t least_bytes) { return length_of(least_bytes); }
    node_stat stat() {
        node_stat s;
        s.czxid = long_number();
        s.mzxid = long_number();
        s.ctime = long_number();
        s.mtime = long_number();
        s.version = number();
        s.cversion = number();
        s.aversion = number();
        s.ephemeral_owner = long_number();
        s.data_length = number();
        s.num_children = number();
        s.pzxid = long_number();
        return s;
    }
    std::vector<std::string> texts() {
        std::vector<std::string> all(count(4));
        for (std::string& one : all) one = text();
        return all;
    }

private:
    std::size_t length_of(std::size_t least_bytes) {
        const std::int32_t n = number();
        if (n < -1 || (n > 0 && static_cast<std::size_t>(n) > rest_.size() / least_bytes)) failed_ = true;
        return failed_ || n < 0 ? 0 : static_cast<std::size_t>(n);
    }
    std::span<const char> take(std::size_t n) {
        if (failed_ || n > rest_.size()) {
            failed_ = true;
            return {};
        }
        const std::span<const char> taken = rest_.first(n);
        rest_ = rest_.subspan(n);
        return taken;
    }
    std::uint64_t big_endian(std::size_t bytes) {
        std::uint64_t v = 0;
        for (const char c : take(bytes)) v = v << 8 | static_cast<unsigned char>(c);
        return v;
    }

    std::span<const char> rest_;
    bool failed_ = false;
};

constexpr const char* cut_short = "an answer of its is cut short, or claims what is not there";

const char* read_steps(frame_reader& from, std::size_t asked, reply& answer) {
    for (;;) {
        const std::int32_t opcode = from.number();
        const bool is_end = from.boolean();
        from.number();  // the failure, which the body has, too
        if (from.failed()) return cut_short;
        if (is_end) break;
        if (answer.results.size() == asked) return "it answers more reads than it was asked for";
        multi_result& one = answer.results.emplace_back();
        if (opcode == get_opcode) {
            one.data = from.text();
            one.stat = from.stat();
        } else if (opcode == children_opcode) {
            one.children = from.texts();
        } else if (opcode == failure_opcode) {
            one.code = to_code(from.number());
        } else {
            return "it answers a read by what is none";
        }
        if (from.failed()) return cut_short;
    }
    return answer.results.size() == asked ? nullptr : "it answers fewer reads than it was asked for";
}

// Nothing: the path is not below the chroot.
std::optional<std::string_view> without_chroot(std::string_view path, std::string_view chroot) {
    if (!path.starts_with(chroot)) return std::nullopt;
    const std::string_view rest = path.substr(chroot.size());
    if (rest.empty() && !chroot.empty()) return "/";
    if (!rest.starts_with('/')) return std::nullopt;
    return rest;
}

const char* read_body(const own_question& asked, frame_reader& from, std::string_view chroot, reply& answer) {
    switch (asked.opcode) {
        case multi_read_request::opcode: return read_steps(from, asked.steps, answer);
        case who_am_i_request::opcode:
            for (std::size_t n = from.count(8); n > 0 && !from.failed(); --n) {
                const std::string_view scheme = from.text(), user = from.text();
                answer.acl.emplace_back(permission::none, acl_id(std::string(scheme), std::string(user)));
            }
            break;
        case ephemerals_request::opcode:
            for (std::size_t n = from.count(4); n > 0 && !from.failed(); --n)
                if (const auto path = without_chroot(from.text(), chroot)) answer.children.emplace_back(*path);
            break;
        case count_below_request::opcode:
            answer.stat.num_children = from.number();
            if (answer.stat.num_children < 0) return "it counts fewer nodes than none";
            break;
        default: break;  // the answers about watches say nothing
    }
    return from.failed() ? cut_short : nullptr;
}

}  // namespace

own_question own_question_of(const request& r) noexcept {
    own_question q;
    std::visit(
        [&q]<class Row>(const Row&) {
            if constexpr (own_row<Row>) q.opcode = Row::opcode;
        },
        r);
    if (const auto* const several = std::get_if<multi_read_request>(&r)) q.steps = several->reads.size();
    return q;
}

std::string own_frame(std::int32_t number, const request& r, std::string_view chroot) {
    frame_writer to(chroot);
    to.number(number);
    std::visit(
        [&to]<class Row>(const Row& row) {
            if constexpr (own_row<Row>) write_body(to.number(Row::opcode), row);
        },
        r);
    return to.take();
}

const char* read_own_answer(const own_question& asked, std::span<const char> frame, std::string_view chroot,
                            reply& answer) {
    frame_reader from(frame);
    from.number();
    from.long_number();
    const std::int32_t failure = from.number();
    if (from.failed()) return cut_short;
    answer.code = to_code(failure);
    return answer.code ? nullptr : read_body(asked, from, chroot, answer);
}

const char* read_event(std::span<const char> frame, std::string_view chroot, std::optional<told_change>& change) {
    frame_reader from(frame);
    from.number();
    const std::int64_t zxid = from.long_number();
    from.number();
    const std::int32_t type = from.number();
    from.number();  // the state of a session, which is alive
    const std::string_view path = from.text();
    if (from.failed()) return cut_short;
    constexpr node_event types[] = {node_event::created, node_event::removed, node_event::data_changed,
                                    node_event::children_changed};
    if (type < 1 || type > 4) return nullptr;
    if (const auto ours = without_chroot(path, chroot))
        change = {types[type - 1], std::string(*ours), std::max<std::int64_t>(zxid, 0)};
    return nullptr;
}

}  // namespace zkasio::detail
