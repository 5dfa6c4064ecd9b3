#pragma once

#include <zkasio/cache/parsed_value.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace zkasio {

/// The options that all caches share. @tparam Options the options class of the cache, which the setters return.
template <class Options>
class cache_options {
public:
    /// The maximum number of changes that are remembered for slow readers, see cache_update::look_again (1024). At
    /// least 1. A change that all readers of changes() have read is forgotten; without a reader, no change is
    /// remembered.
    Options& remembered_changes(std::size_t n) { remembered_ = n; return self(); }
    /// The maximum size of these changes in bytes: mostly node data before and after the changes (16 MiB).
    Options& remembered_bytes(std::size_t n) { bytes_ = n; return self(); }
    /// The maximum number of reads under way at a time (256). At least 1.
    Options& reads_at_a_time(std::size_t n) { reads_ = n; return self(); }

    /// Makes an object of the data of each node, once whenever the data were read: `f(path, data)` returns any type T,
    /// and cached_node::parsed<T>() shows the object to all readers. For data that are parsed, or decompressed. `f` is
    /// called on the client's strand, and is to be quick: the client does nothing else while it runs. If it throws,
    /// this state of the node has no object. The objects do not count for remembered_bytes().
    template <class Parser>
    Options& parse(Parser&& f) {
        using value = std::invoke_result_t<std::remove_cvref_t<Parser>&, const std::string&, const std::string&>;
        using result = std::shared_ptr<const cache_detail::parsed_value>;
        using function = std::function<value(const std::string&, const std::string&)>;
        parse_ = [make = detail::safe_function<function>(std::forward<Parser>(f))](
                     const std::string& path, const std::string& data) -> result {
            return std::make_shared<const cache_detail::parsed_as<value>>(make(path, data));
        };
        return self();
    }

    const cache_detail::node_parser& parser() const noexcept { return parse_; }
    std::size_t remembered_changes() const noexcept { return remembered_; }
    std::size_t remembered_bytes() const noexcept { return bytes_; }
    std::size_t reads_at_a_time() const noexcept { return reads_; }

protected:
    cache_options() {}
    Options& self() noexcept { return static_cast<Options&>(*this); }

private:
    cache_detail::node_parser parse_;
    std::size_t remembered_ = 1024, bytes_ = 16 * 1024 * 1024, reads_ = 256;
};

}  // namespace zkasio
