#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace zklock {

/// How bad it is: a fact, something to think about, something to repair.
enum class severity { fact, warning, problem };

/// What `doctor` has found. Prints each at once, unless all are to be JSON at the end.
class findings {
public:
    explicit findings(bool json) : json_(json) {}
    /// @param about one word. @param text printable.
    void add(severity s, const std::string& about, const std::string& text);
    /// The JSON, or a last line. Returns whether there is nothing to repair, and nothing to think about.
    bool finish() const;

private:
    bool json_;
    int warnings_ = 0, problems_ = 0;
    nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

}  // namespace zklock
