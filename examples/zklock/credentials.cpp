#include "credentials.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <sys/stat.h>

namespace zklock {
namespace {

void check_owner_only(const std::string& file) {
    struct stat s{};
    if (::stat(file.c_str(), &s) != 0) throw std::system_error(errno, std::generic_category(), file);
    if (S_ISREG(s.st_mode) && (s.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        throw std::runtime_error(file + " has passwords, and others than its owner may use it: chmod 600 " + file);
}

void check(const std::string& credential, const std::string& where) {
    const auto colon = credential.find(':');
    if (colon == std::string::npos || colon == 0)
        throw std::runtime_error(where + ": credentials are written user:password");
}

}  // namespace

std::string password_in(const std::string& file) {
    check_owner_only(file);
    std::ifstream in(file);
    std::string line;
    if (!in || !std::getline(in, line)) throw std::runtime_error(file + ": there is no password");
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
}

std::vector<std::string> digest_credentials(const std::string& file) {
    std::vector<std::string> found;
    if (file.empty()) {
        const char* const variable = std::getenv(auth_variable);
        if (variable && *variable) {
            found.emplace_back(variable);
            check(found.back(), std::string("$") + auth_variable);
        }
        return found;
    }
    check_owner_only(file);
    std::ifstream in(file);
    if (!in) throw std::system_error(errno, std::generic_category(), file);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty() || line.front() == '#') continue;
        check(line, file + ":" + std::to_string(number));
        found.push_back(line);
    }
    return found;
}

}  // namespace zklock
