// A program of somebody else's that reads JSON: see CMakeLists.txt.
#include <zkasio/config/json.hpp>

int main() {
    const zkasio::config_format<int> format = zkasio::default_config_format<int>::make();
    return format.parse()("41") + 1 == 42 && format.print()(42) == "42" ? 0 : 1;
}
