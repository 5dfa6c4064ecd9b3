#include <zkasio/discovery/detail/service_path.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

namespace zkasio::discovery_detail {

std::string service_path(const std::string& base, const std::string& name) {
    require_path("discovery", base);
    std::string path = join_path(base, name);
    std::string problem = path_problem(path);
    if (name.empty() || name.find('/') != std::string::npos) problem = "a name is one part of a path";
    if (!problem.empty()) throw error(errc::invalid_path, "discovery", path, problem);
    return path;
}

}  // namespace zkasio::discovery_detail
