#pragma once

#include "history.hpp"
#include "member.hpp"

#include <chrono>
#include <deque>
#include <string>
#include <vector>

namespace demo {

/// How the run stands, in one line.
std::string headline(std::chrono::duration<double> elapsed, const history& all, double per_second, std::int64_t queued);

/// And in a few: the headline, and one line for each process.
std::vector<std::string> dashboard(std::string head, const std::deque<member>& members);

}  // namespace demo
