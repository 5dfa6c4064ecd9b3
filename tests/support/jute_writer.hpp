#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/types.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::test {

/// Writes values as ZooKeeper's jute encoding does (zookeeper.jute of 3.8), without the length of a frame in front.
class jute_writer {
public:
    jute_writer& number(std::int32_t v) { return raw(static_cast<std::uint32_t>(v), 4); }
    jute_writer& long_number(std::int64_t v) { return raw(static_cast<std::uint64_t>(v), 8); }
    jute_writer& boolean(bool v) { return raw(v, 1); }
    /// A string or a buffer.
    jute_writer& text(std::string_view s) {
        number(static_cast<std::int32_t>(s.size()));
        out_ += s;
        return *this;
    }
    /// A string, a buffer or a vector that is not there.
    jute_writer& null() { return number(-1); }
    jute_writer& texts(const std::vector<std::string>& all) {
        number(static_cast<std::int32_t>(all.size()));
        for (const std::string& s : all) text(s);
        return *this;
    }
    jute_writer& acl(const zkasio::acl& entries) {
        number(static_cast<std::int32_t>(entries.size()));
        for (const acl_entry& e : entries)
            number(static_cast<std::int32_t>(e.granted())).text(e.who().scheme()).text(e.who().id());
        return *this;
    }
    jute_writer& stat(const node_stat& s) {
        long_number(s.czxid).long_number(s.mzxid).long_number(s.ctime).long_number(s.mtime);
        number(s.version).number(s.cversion).number(s.aversion).long_number(s.ephemeral_owner);
        return number(s.data_length).number(s.num_children).long_number(s.pzxid);
    }
    /// In front of each step of a transaction, and of each of its results; type -1: a failure.
    jute_writer& step(std::int32_t type, std::int32_t failure = -1) {
        return number(type).boolean(false).number(failure);
    }
    jute_writer& end_of_steps() { return number(-1).boolean(true).number(-1); }

    const std::string& bytes() const { return out_; }
    /// With its length in front, as it goes over the wire.
    std::string frame() const {
        jute_writer whole;
        whole.text(out_);
        return whole.out_;
    }

private:
    jute_writer& raw(std::uint64_t v, int size) {
        for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) out_ += static_cast<char>((v >> shift) & 0xff);
        return *this;
    }
    std::string out_;
};

}  // namespace zkasio::test
