#include <dlfcn.h>

#include <cstdio>

int main() {
    void* plugin = dlopen(PLUGIN, RTLD_NOW);
    if (!plugin) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    const auto check = reinterpret_cast<int (*)()>(dlsym(plugin, "check_plugin"));
    return check ? check() : 1;
}
