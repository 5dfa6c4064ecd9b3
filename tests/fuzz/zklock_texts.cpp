// What zklock reads from its arguments and files. The first line is "acl", "auth", "duration" or "data".
#include "fuzz/fuzz.hpp"

#include <zklock/acl_text.hpp>
#include <zklock/credentials.hpp>
#include <zklock/duration.hpp>
#include <zklock/input.hpp>
#include <zklock/node_text.hpp>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace zkasio::fuzz;

void check_acl(std::string_view text) {
    zkasio::acl entries;
    try {
        entries = zklock::parse_acl(text);
    } catch (const std::invalid_argument&) {
        return;
    }
    require(!entries.empty(), "an ACL is not empty", text);
    std::string printed;
    for (const zkasio::acl_entry& e : entries) {
        require(!e.who().scheme().empty(), "a scheme has a name", text);
        require(e.granted() != zkasio::permission::none && (e.granted() & zkasio::permission::all) == e.granted(),
                "permissions are some of five", text);
        printed += (printed.empty() ? "" : ",") + zklock::to_text(e);
    }
    require(zklock::parse_acl(printed) == entries, "what is printed is read again", text);
    const bool opens = std::any_of(entries.begin(), entries.end(), [](const zkasio::acl_entry& e) {
        return e.who() == zkasio::anyone() && e.granted() != zkasio::permission::read;
    });
    require(zklock::open_to_the_world(entries) == opens, "a directory that all may write is called so", text);
}

// A file of this process, for its owner only.
std::string file_with(std::string_view text) {
    static const std::string name = "/dev/shm/zkasio-fuzz-" + std::to_string(::getpid());
    {
        std::ofstream out(name, std::ios::binary | std::ios::trunc);
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
    }
    ::chmod(name.c_str(), 0600);
    return name;
}

void check_credentials(std::string_view text) {
    const std::string name = file_with(text);
    std::vector<std::string> found;
    try {
        found = zklock::digest_credentials(name);
    } catch (const std::runtime_error& e) {
        // The message names the line, and not what is in it.
        const std::string_view what = e.what();
        require(what.starts_with(name + ":"), "an error names the line", what);
        require(what.substr(name.size()).find_first_not_of("0123456789: acdehilnoprstuw") == what.npos,
                "an error does not show a password", what);
        ::unlink(name.c_str());
        return;
    }
    std::string printed = "# again\n\n";
    for (const std::string& credential : found) {
        const std::size_t colon = credential.find(':');
        require(colon != credential.npos && colon > 0, "a credential has a user", credential);
        require(credential.find('\n') == credential.npos, "a credential is a line", credential);
        printed += credential + "\r\n";
    }
    require(zklock::digest_credentials(file_with(printed)) == found, "what is printed is read again", text);
    ::unlink(name.c_str());
}

void check_duration(std::string_view text) {
    const auto d = zklock::parse_duration(text);
    if (!d) return;
    require(d->count() >= 0 && d->count() <= 10 * 366 * 86'400'000LL, "a duration has its limits", text);
    require(zklock::parse_duration(std::to_string(d->count()) + "ms") == d, "what is printed is read again", text);
    require(!zklock::to_text(*d).empty(), "and shown", text);
}

void check_data(std::string_view text) {
    const auto controls = [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; };
    const std::string lines = zklock::printable_lines(text);
    require(std::none_of(lines.begin(), lines.end(), controls), "text controls no terminal", text);
    require(std::count(lines.begin(), lines.end(), '\n') == std::count(text.begin(), text.end(), '\n'),
            "lines stay lines", text);
    for (const auto layout : {zklock::json_layout::pretty, zklock::json_layout::one_line}) {
        nlohmann::ordered_json j;
        j["data"] = zklock::json_text(std::string(text));
        const std::string dumped = zklock::dump(j, layout);
        require(std::none_of(dumped.begin(), dumped.end(), controls), "JSON controls no terminal", text);
        for (std::size_t i = 0; i + 1 < dumped.size(); ++i)
            require(dumped[i] != '\xc2' || static_cast<unsigned char>(dumped[i + 1]) >= 0xa0,
                    "JSON has no control character beyond ASCII", text);
        require(nlohmann::ordered_json::parse(dumped) == j, "JSON says what it was given", text);
        if (layout == zklock::json_layout::one_line)
            require(std::count(dumped.begin(), dumped.end(), '\n') == 1, "one line is one", text);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest = view(data, size);
    const std::string_view what = take_line(rest);
    if (what == "acl") check_acl(rest);
    if (what == "auth") check_credentials(rest);
    if (what == "duration") check_duration(rest);
    if (what == "data") check_data(rest);
    return 0;
}
