#pragma once

#include "raw_session.hpp"
#include "workers.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using worker = void (*)(const task&, const conductor_link&);

/// What all workers of a measurement have reported.
struct outcome {
    report sum;
    double released = 0;  // when the first holder went
};

enum class message_kind { ready, go, queued, done };

/// Lets workers measure, in processes of their own, and holds the lock until all of them have queued.
class conductor {
public:
    explicit conductor(std::string server) : server_(std::move(server)) {}
    ~conductor();

    /// Nothing if it failed or took longer than `limit` seconds.
    std::optional<outcome> measure(worker work, task what, int processes, bool first_holder, double limit);

private:
    struct child {
        pid_t pid;
        int fd;
    };

    void start(worker work, const task& what);

    bool all(message_kind expected, outcome* o = nullptr);
    bool go();
    bool let_go(const std::string& holder, outcome& o);

    // Short, and always of the same length: it is in every answer to a create.
    const std::string root = "/zb" + std::to_string(100000 + ::getpid() % 900000);
    const std::string server_;
    std::optional<raw_session> session_;  // a new one for each measurement
    std::vector<child> workers_;
    std::vector<std::string> left_;
    double deadline_ = 0;
    int directories_ = 10000;
};

}  // namespace bench
