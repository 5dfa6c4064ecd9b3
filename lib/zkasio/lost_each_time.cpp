#include <zkasio/lost_each_time.hpp>

#include <string>

namespace zkasio {

error lost_each_time(std::string_view operation, std::string_view path, std::size_t bytes) {
    const std::string size = bytes > 0 ? " of " + std::to_string(bytes) + " bytes" : "";
    return error(zk_errc::connection_loss, operation, path,
                 "each of " + std::to_string(most_lost_writes) + " connections ended with this request" + size +
                     ", which was not applied: is it larger than the servers' jute.maxbuffer?");
}

}  // namespace zkasio
