#pragma once

#include <string>
#include <string_view>

namespace zkasio::test {

/// A directory that goes with the object.
class temporary_directory {
public:
    temporary_directory();
    ~temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const { return path_ + '/' + std::string(name); }

private:
    std::string path_;
};

}  // namespace zkasio::test
