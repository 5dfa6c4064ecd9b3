#include <zkasio/cache/cached_node.hpp>

#include <zkasio/cache/detail/directory.hpp>

#include <utility>

namespace zkasio {

using cache_detail::node_value;

cached_node::cached_node(const node_value* value) noexcept : value_(value) {
    if (value_) value_->share();
}

cached_node::cached_node(const cached_node& other) noexcept : cached_node(other.value_) {}
cached_node::cached_node(cached_node&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}

cached_node& cached_node::operator=(cached_node other) noexcept {
    std::swap(value_, other.value_);
    return *this;
}

cached_node::~cached_node() {
    if (value_ && value_->leave()) delete value_;
}

namespace {

const node_value& none() noexcept {
    static const node_value empty;
    return empty;
}

}  // namespace

const std::string& cached_node::data() const noexcept { return (value_ ? *value_ : none()).data; }
const node_stat& cached_node::stat() const noexcept { return (value_ ? *value_ : none()).stat; }
bool cached_node::readable() const noexcept { return value_ && value_->readable; }

const cache_detail::parsed_value* cached_node::parsed_data() const noexcept {
    return value_ ? value_->parsed.get() : nullptr;
}

bool cached_node::is_same(const cached_node& other) const noexcept {
    if (!value_ || !other.value_) return value_ == other.value_;
    return stat().czxid == other.stat().czxid && stat().mzxid == other.stat().mzxid && readable() == other.readable();
}

}  // namespace zkasio
