#include <zkasio/recipe/log_warning.hpp>

#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/client/await.hpp>

#include <utility>

namespace zkasio {

void log_warning(const client& zk, std::string text, std::vector<log_field> fields) {
    const detail::core_ptr core = detail::access::core_of(zk);
    if (!core) return;
    detail::on_strand(core,
                      [core, text = std::move(text), fields = std::move(fields)] { core->log().warn(text, fields); });
}

}  // namespace zkasio
