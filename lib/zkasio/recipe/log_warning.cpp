#include <zkasio/recipe/log_warning.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>

#include <utility>

namespace zkasio {

namespace {

void warn(const detail::core_ptr& core, std::string text, std::vector<log_field> fields) {
    if (!core) return;
    detail::on_strand(core,
                      [core, text = std::move(text), fields = std::move(fields)] { core->log().warn(text, fields); });
}

}  // namespace

void log_warning(const client& zk, std::string text, std::vector<log_field> fields) {
    warn(detail::access::core_of(zk), std::move(text), std::move(fields));
}
void log_warning(const session& on, std::string text, std::vector<log_field> fields) {
    warn(detail::access::core_of(on), std::move(text), std::move(fields));
}

}  // namespace zkasio
