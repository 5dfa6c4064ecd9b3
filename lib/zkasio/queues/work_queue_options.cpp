#include <zkasio/queues/work_queue_options.hpp>

#include <zkasio/error.hpp>

namespace zkasio {

put_options& put_options::priority(int n) {
    if (n < 0 || n > 999) throw error(errc::invalid_argument, "put", {}, "a priority is a number from 0 to 999");
    priority_ = n;
    return *this;
}

}  // namespace zkasio
