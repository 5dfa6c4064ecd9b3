#pragma once

#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

#include <unistd.h>

// Of clang's runtime for coverage, in programs that are built for it: adds what this process has reached to the
// profile.
extern "C" __attribute__((weak)) int __llvm_profile_write_file();

namespace zkasio::test {

/// Forks, and runs `f` in the child: no Catch2 in there, it would report what the parent does. `f` returns what is
/// wrong, or nothing. The child ends after 20 s at the latest, and runs no destructors of statics.
/// @returns the child's id, or -1.
inline pid_t fork_child(const std::function<std::string()>& f) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::alarm(20);
    std::string wrong;
    try {
        wrong = f();
    } catch (const std::exception& e) {
        wrong = e.what();
    }
    if (!wrong.empty()) std::cerr << "in the child: " << wrong << std::endl;
    if (__llvm_profile_write_file) __llvm_profile_write_file();
    ::_exit(wrong.empty() ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace zkasio::test
