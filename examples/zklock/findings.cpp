#include "findings.hpp"

#include "node_text.hpp"
#include "terminal.hpp"

namespace zklock {
namespace {

const char* name_of(severity s) {
    switch (s) {
        case severity::fact: return "ok";
        case severity::warning: return "warning";
        case severity::problem: return "problem";
    }
    return "";
}

std::string mark_of(severity s) {
    const std::string text = padded(name_of(s), 9);
    if (s == severity::fact) return painted(colour::green, text);
    return painted(s == severity::warning ? colour::yellow : colour::red, text);
}

std::string counted(int n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace

void findings::add(severity s, const std::string& about, const std::string& text) {
    if (s == severity::warning) ++warnings_;
    if (s == severity::problem) ++problems_;
    if (!json_) {
        print(mark_of(s) + padded(about, 12) + text + "\n");
        return;
    }
    nlohmann::ordered_json one;
    one["severity"] = name_of(s);
    one["about"] = about;
    one["text"] = text;
    list_.push_back(std::move(one));
}

bool findings::finish(nlohmann::ordered_json all) const {
    all["findings"] = list_;
    all["warnings"] = warnings_;
    all["problems"] = problems_;
    print(json_ ? dump(all) : counted(problems_, "problem") + ", " + counted(warnings_, "warning") + "\n");
    return problems_ == 0;
}

}  // namespace zklock
