#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace demo {

/// What is printed at the end: figures, and claims that hold or do not.
class report {
public:
    void figure(std::string name, std::string value);
    void check(std::string claim, bool holds, std::string detail);

    bool passed() const noexcept { return failures_ == 0; }
    std::vector<std::string> lines() const;

private:
    struct row {
        std::string name, value;
    };
    struct claim {
        std::string text;
        bool holds;
        std::string detail;
    };
    std::vector<row> figures_;
    std::vector<claim> claims_;
    int failures_ = 0;
};

/// "840 us", "12.3 ms", "3.41 s"
std::string to_text(std::chrono::microseconds t);
/// "48 211"
std::string to_text(std::size_t count);

}  // namespace demo
