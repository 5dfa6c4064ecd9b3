#pragma once

// The code that the pages of docs/ show, compiled and run: one file for each page, which shows what stands between
// "// [name]" and "// [/name]". Each part takes the servers, and throws when something is not as the page says.

#include "../expect.hpp"

#include <string>

void guide_starting(std::string servers);  // forks: before there are threads
void guide_sessions(std::string servers);
void guide_threads(std::string servers);
void guide_cancellation(std::string servers);
void guide_fencing(std::string servers);
void guide_operating(std::string servers);
void guide_coming_from(std::string servers);
void guide_recipes(std::string servers);
