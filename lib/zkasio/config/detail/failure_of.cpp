#include <zkasio/config/detail/failure_of.hpp>

namespace zkasio::config_detail {

error failure_of(std::string_view operation, const std::string& path, const error& e) {
    std::string_view hint = e.hint();
    // The hint of a request names other options than config_options.
    if (e.code() == zk_errc::no_node && hint.find("chroot") == hint.npos)
        hint = "the node, or its parent, does not exist: see config_options::create_with()";
    return error(e.code(), operation, path, hint, e.outcome_unknown());
}

}  // namespace zkasio::config_detail
