"""zkasio for Conan 2, from the checkout that this file is in.

    conan create packaging/conan --build=missing

The ZooKeeper C client comes from Debian (libzookeeper-st-dev): Conan Center's zookeeper-client-c is the one with
threads of its own, which zkasio does not work with.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.0"


class ZkasioConan(ConanFile):
    name = "zkasio"
    description = "ZooKeeper coordination for C++20 async servers"
    license = "BSL-1.0"
    topics = ("zookeeper", "asio", "coroutines", "locks", "leader-election")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "json": [True, False],
        "kerberos": [True, False],
        "prometheus": [True, False],
        "sasl": [True, False],
        "testing": [True, False],
        "tls": [True, False],
        "zklock": [True, False],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "json": True,
        "kerberos": False,
        "prometheus": False,
        "sasl": False,
        "testing": False,
        "tls": False,
        "zklock": False,
    }
    implements = ["auto_shared_fpic"]

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._checkout, "CMakeLists.txt"))
        self.version = re.search(r"project\(zkasio VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "lib/*", "examples/zklock/*",
                        "docs/zklock.schema.json"):
            copy(self, pattern, self._checkout, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # Programs are compiled with its headers, and have to have the very same version: it is part of the ABI.
        self.requires("asio/[>=1.22.1 <2]", transitive_headers=True, package_id_mode="full_version_mode")
        if self.options.json:
            self.requires("nlohmann_json/[>=3.9 <4]", transitive_headers=True)
        if self.options.prometheus:
            self.requires("prometheus-cpp/[>=1.0 <2]", transitive_headers=True, transitive_libs=True)
        if self.options.sasl or self.options.tls:
            self.requires("openssl/[>=3 <4]", transitive_headers=True, transitive_libs=True)
        if self.options.zklock:
            self.requires("cli11/[>=2.0 <3]", visible=False)

    def system_requirements(self):
        Apt(self).install(["libzookeeper-st-dev"] + (["libkrb5-dev"] if self.options.kerberos else []), check=True)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("zkasio is for Linux")
        if self.options.zklock and not self.options.json:
            raise ConanInvalidConfiguration("zklock needs json")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ZKASIO_TESTS"] = False
        toolchain.cache_variables["ZKASIO_EXAMPLES"] = False
        toolchain.cache_variables["ZKASIO_BENCHMARKS"] = False
        toolchain.cache_variables["ZKASIO_INSTALL"] = True
        toolchain.cache_variables["ZKASIO_JSON"] = bool(self.options.json)
        toolchain.cache_variables["ZKASIO_KERBEROS"] = bool(self.options.kerberos)
        toolchain.cache_variables["ZKASIO_PROMETHEUS"] = bool(self.options.prometheus)
        toolchain.cache_variables["ZKASIO_SASL"] = bool(self.options.sasl)
        toolchain.cache_variables["ZKASIO_TESTING"] = bool(self.options.testing)
        toolchain.cache_variables["ZKASIO_TLS"] = bool(self.options.tls)
        toolchain.cache_variables["ZKASIO_ZKLOCK"] = bool(self.options.zklock)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # zkasio brings a CMake package of its own, which knows its components and checks Asio's version.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "zkasio")]
        parts = [("discovery", self.options.json), ("kerberos", self.options.kerberos),
                 ("prometheus", self.options.prometheus), ("sasl", self.options.sasl),
                 ("testing", self.options.testing), ("tls", self.options.tls)]
        self.cpp_info.libs = [f"zkasio_{part}" for part, chosen in parts if chosen] + ["zkasio"]
        self.cpp_info.system_libs = ["zookeeper_st", "pthread"] + (["gssapi_krb5"] if self.options.kerberos else [])
