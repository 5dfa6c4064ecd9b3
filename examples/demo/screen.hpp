#pragma once

#include <string>
#include <vector>

namespace demo {

/// The standard output: lines that stay, and, on a terminal, below them a few that are drawn over.
class screen {
public:
    screen();
    ~screen() { show({}); }

    bool is_terminal() const noexcept { return terminal_; }

    void say(const std::string& line);

    /// On a terminal, draws these over the ones from before. Elsewhere nothing.
    void show(std::vector<std::string> lines);

private:
    std::string erase() const;
    std::string draw() const;

    bool terminal_;
    std::vector<std::string> live_;
};

}  // namespace demo
