// guide SERVERS [PART...]: all parts, or those that are named.
#include "guide.hpp"

#include <iostream>
#include <map>
#include <string>

int main(int argc, char** argv) {
    const std::map<std::string, void (*)(std::string)> parts = {
        {"starting", guide_starting},        {"sessions", guide_sessions},   {"threads", guide_threads},
        {"fencing", guide_fencing},          {"operating", guide_operating}, {"coming-from", guide_coming_from},
        {"cancellation", guide_cancellation}, {"recipes", guide_recipes}};
    const std::string servers = argc > 1 ? argv[1] : "127.0.0.1:2181";
    try {
        for (int i = 2; i < argc; ++i) parts.at(argv[i])(servers);
        if (argc <= 2) {
            guide_starting(servers);
            for (const auto& [name, part] : parts)
                if (name != "starting") part(servers);
        }
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
