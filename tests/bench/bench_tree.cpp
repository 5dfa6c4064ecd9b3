#include "bench_tree.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace bench {
namespace {

void on_created(int rc, const char*, const void* pending) {
    check(rc == ZNODEEXISTS ? ZOK : rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}
void on_removed(int rc, const void* pending) {
    check(rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}

}  // namespace

// In a session for that alone: nobody looks after it while others are measured.
template <class Start>
void bench_tree::each(Start start) {
    raw_session on(server_);
    for (const std::string& path : paths_) {
        ++pending_;
        check(start(on, path));
        while (pending_ >= 500) turn({&on}, -1, 100);
    }
    while (pending_ > 0) turn({&on}, -1, 100);
}

bench_tree::bench_tree(std::string server, int nodes, int directories, std::string data)
    : server_(std::move(server)), root_("/zbc" + std::to_string(::getpid())), data_(std::move(data)) {
    if (directories == 0) directories = std::max(1, nodes / in_a_directory);
    paths_.push_back(root_);
    for (int d = 0; d < directories; ++d) paths_.push_back(root_ + "/" + std::to_string(d));
    for (int i = 0; static_cast<int>(paths_.size()) < nodes; ++i)
        paths_.push_back(root_ + "/" + std::to_string(i % directories) + "/node-" + std::to_string(i));
    each([this](const raw_session& on, const std::string& path) {
        return zoo_acreate(on.handle(), path.c_str(), data_.data(), static_cast<int>(data_.size()),
                           &ZOO_OPEN_ACL_UNSAFE, 0, &on_created, &pending_);
    });
}

bench_tree::~bench_tree() {
    std::reverse(paths_.begin(), paths_.end());
    each([this](const raw_session& on, const std::string& path) {
        return zoo_adelete(on.handle(), path.c_str(), -1, &on_removed, &pending_);
    });
}

double bench_tree::bytes_of_paths_and_data() const {
    double sum = 0;
    for (const std::string& path : paths_) sum += static_cast<double>(path.size() + data_.size());
    return sum;
}

}  // namespace bench
