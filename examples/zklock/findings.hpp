#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace zklock {

/// How bad it is: a fact, something to think about, something to repair.
enum class severity { fact, warning, problem };

/// What `doctor` or `cost` has found. Prints each at once, unless all are to be JSON at the end.
class findings {
public:
    explicit findings(bool json) : json_(json) {}
    /// @param about one word. @param text printable.
    void add(severity s, const std::string& about, const std::string& text);
    /// The JSON, `more` in front, or a last line. Returns whether there is no problem.
    bool finish(nlohmann::ordered_json more = nlohmann::ordered_json::object()) const;

private:
    bool json_;
    int warnings_ = 0, problems_ = 0;
    nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

}  // namespace zklock
