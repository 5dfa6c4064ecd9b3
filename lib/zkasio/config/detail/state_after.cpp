#include <zkasio/config/detail/state_after.hpp>

#include <exception>
#include <string_view>

namespace zkasio::config_detail {

error failure_of(std::string_view operation, const std::string& path, const error& e) {
    std::string_view hint = e.hint();
    // The hint of a request names other options than config_options.
    if (e.code() == zk_errc::no_node && hint.find("chroot") == hint.npos)
        hint = "the node, or its parent, does not exist: see config_options::create_with()";
    return error(e.code(), operation, path, hint, e.outcome_unknown());
}

std::string reason_in_flight() {
    constexpr std::size_t longest = 300;  // parsers quote their input, which may be 1 MiB of nonsense
    std::string reason = "an exception that is no std::exception";
    try {
        throw;
    } catch (const std::exception& e) {
        reason = e.what();
    } catch (...) {
    }
    if (reason.size() > longest) reason = reason.substr(0, longest) + "...";
    return reason;
}

namespace {

void read_value(config_state& now, const node_answer& answer, const std::string& path, const value_parser& parse) {
    now.version = answer.stat.version;
    try {
        now.value = parse(answer.data);
    } catch (...) {
        now.problem.emplace(errc::invalid_argument, "config", path,
                            "version " + std::to_string(now.version) + " is refused: " + reason_in_flight());
    }
}

}  // namespace

config_state state_after(const config_state& last, const node_report& said, const std::string& path,
                         const value_parser& parse, const std::shared_ptr<const void>& fallback) {
    config_state now = last;
    ++now.number;
    now.problem.reset();
    if (!said.mark.code) {
        read_value(now, said.answer, path, parse);
    } else if (said.mark.code != zk_errc::no_node) {
        now.problem.emplace(said.mark.code, "config", path);
    } else {
        now.version = no_node_version;
        if (fallback)
            now.value = fallback;
        else
            now.problem.emplace(said.mark.code, "config", path,
                                "nobody has set a value, and there is no default_value()");
    }
    return now;
}

}  // namespace zkasio::config_detail
