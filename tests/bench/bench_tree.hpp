#pragma once

#include "raw_session.hpp"

#include <string>
#include <vector>

namespace bench {

/// A root, directories, and nodes in them, on a server; removed in the end.
class bench_tree {
public:
    static constexpr int in_a_directory = 100;

    /// @param directories 0: one for a hundred nodes
    bench_tree(std::string server, int nodes, int directories = 0, std::string data = std::string(100, 'x'));
    ~bench_tree();
    bench_tree(const bench_tree&) = delete;
    bench_tree& operator=(const bench_tree&) = delete;

    const std::string& root() const { return root_; }
    double nodes() const { return static_cast<double>(paths_.size()); }
    double bytes_of_paths_and_data() const;

private:
    template <class Start>
    void each(Start start);

    std::string server_, root_, data_;
    std::vector<std::string> paths_;
    int pending_ = 0;
};

}  // namespace bench
