#pragma once

#include <zkasio/types.hpp>

#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio {

/// A list of reads for operations::multi_read().
class read_list {
public:
    enum class kind { get, children };
    struct read {
        kind what;
        std::string path;
    };

    read_list() {}

    read_list& get(std::string path) {
        all_.push_back({kind::get, std::move(path)});
        return *this;
    }
    read_list& children(std::string path) {
        all_.push_back({kind::children, std::move(path)});
        return *this;
    }

    const std::vector<read>& all() const noexcept { return all_; }
    std::size_t size() const noexcept { return all_.size(); }
    bool empty() const noexcept { return all_.empty(); }

private:
    std::vector<read> all_;
};

/// The result of one of several reads.
struct read_result {
    std::error_code code;            ///< why this read was refused, such as zk_errc::no_node; none: it was not
    std::string data;                ///< of a get()
    node_stat stat;                  ///< of a get(); the answer to a children() has none
    std::vector<std::string> names;  ///< of a children(): names, not paths, in no particular order
};

}  // namespace zkasio
