#pragma once

#include <zkasio/cache/cache.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/export.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace zkasio {

class tree_cache_options : public cache_options<tree_cache_options> {
public:
    using path_filter = std::function<bool(const std::string& path)>;

    tree_cache_options() {}
    /// The number of levels below the root (all of them). 0: the root alone.
    tree_cache_options& depth(std::size_t levels) { depth_ = levels; return *this; }
    /// Without the data of the nodes: names and stats only (with data).
    tree_cache_options& without_data() { data_ = false; return *this; }
    /// Selects the nodes that are looked at (all). The root always is. If a node is left out, all nodes below it are
    /// left out, too. The filter is called on the client's strand, for each node when it is found, and for a node that
    /// is left out whenever its parent is listed. A filter that throws leaves the node out.
    template <class Filter = path_filter>
    tree_cache_options& filter(Filter&& f) {
        filter_ = detail::safe_function<path_filter>(std::forward<Filter>(f));
        return *this;
    }

    /// Selects the nodes whose children are looked at (all), the root among them: a node that is left out here is in
    /// the cache, and none below it. Called as filter(), for nodes that passed it.
    template <class Filter = path_filter>
    tree_cache_options& filter_below(Filter&& f) {
        filter_below_ = detail::safe_function<path_filter>(std::forward<Filter>(f));
        return *this;
    }

    std::size_t depth() const noexcept { return depth_; }
    bool with_data() const noexcept { return data_; }
    const path_filter& filter() const noexcept { return filter_; }
    const path_filter& filter_below() const noexcept { return filter_below_; }

private:
    std::size_t depth_ = std::numeric_limits<std::size_t>::max();
    bool data_ = true;
    path_filter filter_, filter_below_;
};

/// A copy of a node and of all nodes below it in memory: see cache.
class ZKASIO_EXPORT tree_cache : public cache {
public:
    /// @param path need not exist. Throws errc::invalid_path and errc::invalid_argument.
    tree_cache(const client& zk, std::string path, tree_cache_options options = tree_cache_options());

    /// The state that is known at this moment. Costs a copy of a pointer under a mutex, however large the tree is.
    tree_view snapshot() const { return view(); }
};

}  // namespace zkasio
