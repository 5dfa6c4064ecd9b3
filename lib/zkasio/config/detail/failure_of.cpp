#include <zkasio/config/detail/failure_of.hpp>

namespace zkasio::config_detail {

namespace {

// What it says beyond its reason, "operation path: reason (this)". Of its own text.
std::string_view hint_of(const error& e) {
    std::string_view said = e.what();
    const std::string without = std::string(error(e.code(), e.operation(), e.path()).what()) + " (";
    if (!said.starts_with(without)) return {};
    said.remove_prefix(without.size());
    return said.substr(0, said.rfind(')'));  // what may follow has none
}

}  // namespace

error failure_of(std::string_view operation, const std::string& path, const error& e) {
    std::string_view hint = hint_of(e);
    // A request speaks of other options than these.
    if (e.code() == zk_errc::no_node && hint.find("chroot") == hint.npos)
        hint = "the node, or its parent, does not exist: see config_options::create_with()";
    return error(e.code(), operation, path, hint, e.outcome_unknown());
}

}  // namespace zkasio::config_detail
