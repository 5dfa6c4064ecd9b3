#include "acl_text.hpp"

#include <array>
#include <stdexcept>
#include <utility>

namespace zklock {
namespace {

using zkasio::permission;

constexpr std::array<std::pair<char, permission>, 5> letters{{{'c', permission::create},
                                                              {'d', permission::remove},
                                                              {'r', permission::read},
                                                              {'w', permission::write},
                                                              {'a', permission::admin}}};

permission parse_permissions(std::string_view text) {
    permission sum = permission::none;
    for (const char c : text) {
        permission one = permission::none;
        for (const auto& [letter, p] : letters)
            if (letter == c) one = p;
        if (one == permission::none)
            throw std::invalid_argument("permissions are letters of \"cdrwa\", not \"" + std::string(text) + "\"");
        sum = sum | one;
    }
    return sum;
}

zkasio::acl_entry parse_entry(std::string_view text) {
    const auto first = text.find(':'), last = text.rfind(':');
    if (first == std::string_view::npos || first == 0 || first == last || last + 1 == text.size())
        throw std::invalid_argument("an entry of an ACL is scheme:id:permissions, not \"" + std::string(text) + "\"");
    zkasio::acl_id who(std::string(text.substr(0, first)), std::string(text.substr(first + 1, last - first - 1)));
    return {parse_permissions(text.substr(last + 1)), std::move(who)};
}

}  // namespace

zkasio::acl parse_acl(std::string_view text) {
    if (text == "open") return zkasio::open_acl();
    if (text == "creator") return zkasio::creator_all_acl();
    if (text == "read-only") return zkasio::read_only_acl();
    zkasio::acl entries;
    for (;;) {
        const auto comma = text.find(',');
        entries.push_back(parse_entry(text.substr(0, comma)));
        if (comma == std::string_view::npos) return entries;
        text.remove_prefix(comma + 1);
    }
}

std::string to_text(permission p) {
    std::string text;
    for (const auto& [letter, one] : letters)
        if ((p & one) != permission::none) text += letter;
    return text;
}

std::string to_text(const zkasio::acl_entry& e) {
    return e.who().scheme() + ":" + e.who().id() + ":" + to_text(e.granted());
}

bool open_to_the_world(const zkasio::acl& a) {
    for (const zkasio::acl_entry& e : a) {
        const bool writes = e.granted() != permission::none && e.granted() != permission::read;
        if (writes && e.who() == zkasio::anyone()) return true;
    }
    return false;
}

}  // namespace zklock
