"""What packages are made from agrees with what CMake builds: vcpkg's port, Conan's recipe, the workflow of GitHub.

Neither vcpkg nor Conan is a Debian package, so the port's logic runs with stand-ins for vcpkg's functions, and the
recipe is read, not run.
"""
import ast
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORT = ROOT / "packaging/vcpkg/ports/zkasio"
CMAKE = (ROOT / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(zkasio VERSION ([0-9.]+) DESCRIPTION \"([^\"]+)\"", CMAKE)
OPTIONS = set(re.findall(r"(?:option|cmake_dependent_option)\((ZKASIO_\w+)", CMAKE))
# What is no feature of a library that others install.
NOT_FEATURES = {"ZKASIO_TESTS", "ZKASIO_EXAMPLES", "ZKASIO_BENCHMARKS", "ZKASIO_INSTALL", "ZKASIO_WERROR",
                "ZKASIO_DEBIAN", "ZKASIO_FUZZERS"}
FEATURES = {option.removeprefix("ZKASIO_").lower() for option in OPTIONS - NOT_FEATURES}

# What vcpkg's functions are for a port: they say what they are asked for.
STAND_INS = """
cmake_minimum_required(VERSION 3.25)
set(FEATURES {features})
set(PORT zkasio)
set(CURRENT_PORT_DIR "{port}")
set(CURRENT_PACKAGES_DIR "{packages}")
function(vcpkg_check_features)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
    set(options "")
    while(arg_FEATURES)
        list(POP_FRONT arg_FEATURES feature option)
        if(feature IN_LIST FEATURES)
            list(APPEND options -D${{option}}=ON)
        else()
            list(APPEND options -D${{option}}=OFF)
        endif()
    endwhile()
    set(${{arg_OUT_FEATURE_OPTIONS}} "${{options}}" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    message(STATUS "source ${{arg_SOURCE_PATH}}")
    foreach(option ${{arg_OPTIONS}})
        message(STATUS "option ${{option}}")
    endforeach()
endfunction()
foreach(name vcpkg_cmake_install vcpkg_cmake_config_fixup vcpkg_fixup_pkgconfig vcpkg_copy_tools
        vcpkg_install_copyright)
    cmake_language(EVAL CODE "function(${{name}})\\nmessage(STATUS \\"call ${{name}} \\${{ARGN}}\\")\\nendfunction()")
endforeach()
include("{port}/portfile.cmake")
"""


def run_port(features):
    """What the port does with these features: {"source": [...], "option": [...], "call": [...]}."""
    with tempfile.TemporaryDirectory() as work:
        script, packages = pathlib.Path(work, "port.cmake"), pathlib.Path(work, "packages")
        script.write_text(STAND_INS.format(features=" ".join(features), port=PORT, packages=packages))
        said = subprocess.run(["cmake", "-P", script], check=True, stdout=subprocess.PIPE, text=True).stdout
        installed = {path.name for path in packages.rglob("*") if path.is_file()}
    done = {"source": [], "option": [], "call": [], "installed": installed}
    for kind, what in re.findall(r"^-- (source|option|call) (.*)$", said, re.MULTILINE):
        done[kind].append(what)
    return done


class Vcpkg(unittest.TestCase):
    def setUp(self):
        self.manifest = json.loads((PORT / "vcpkg.json").read_text())

    def test_manifest_is_of_this_version(self):
        self.assertEqual((self.manifest["version"], self.manifest["description"]), VERSION.groups())

    def test_features_are_the_options(self):
        self.assertEqual(set(self.manifest["features"]), FEATURES)

    def test_port_passes_each_feature_on(self):
        for chosen in [set(), *({feature} for feature in FEATURES), FEATURES]:
            with self.subTest(chosen=chosen):
                done = run_port(sorted(chosen))
                self.assertEqual([pathlib.Path(path) for path in done["source"]], [ROOT])
                for feature in FEATURES:
                    state = "ON" if feature in chosen else "OFF"
                    self.assertIn(f"-DZKASIO_{feature.upper()}={state}", done["option"])
                self.assertIn("-DZKASIO_TESTS=OFF", done["option"])
                self.assertTrue({re.match("-D([A-Z_]+)=", option)[1] for option in done["option"]} <= OPTIONS)
                self.assertEqual("vcpkg_copy_tools TOOL_NAMES;zklock;AUTO_CLEAN" in done["call"], "zklock" in chosen)
                self.assertEqual(done["installed"], {"usage"})

    def test_port_finds_what_is_installed(self):
        install = (ROOT / "cmake/ZkasioInstall.cmake").read_text()
        self.assertIn("set(zkasio_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zkasio)", install)
        self.assertIn("vcpkg_cmake_config_fixup CONFIG_PATH;lib/cmake/zkasio", run_port([])["call"])

    def test_asio_is_new_enough(self):
        least = re.search(r"find_package\(ZkasioAsio ([0-9.]+)", CMAKE)[1]
        asio = next(d for d in self.manifest["dependencies"] if d["name"] == "asio")
        self.assertTrue(asio["version>="].startswith(least))


class Conan(unittest.TestCase):
    def setUp(self):
        self.source = (ROOT / "packaging/conan/conanfile.py").read_text()
        recipe = next(n for n in ast.parse(self.source).body if isinstance(n, ast.ClassDef))
        self.values = {n.targets[0].id: ast.literal_eval(n.value) for n in recipe.body if isinstance(n, ast.Assign)}

    def test_description_is_the_projects(self):
        self.assertEqual(self.values["description"], VERSION[2])
        self.assertEqual(self.values["name"], "zkasio")

    def test_options_are_the_options(self):
        self.assertEqual(set(self.values["options"]) - {"shared", "fPIC"}, FEATURES)
        self.assertEqual(set(self.values["options"]), set(self.values["default_options"]))

    def test_recipe_passes_each_option_on(self):
        passed = dict(re.findall(r'cache_variables\["(ZKASIO_\w+)"\] = (?:bool\(self\.options\.)?(\w+)', self.source))
        self.assertLessEqual(set(passed), OPTIONS)
        for feature in FEATURES:
            self.assertEqual(passed[f"ZKASIO_{feature.upper()}"], feature)

    def test_recipe_finds_the_version(self):
        pattern = re.search(r're\.search\(r"(.*?)", text\)', self.source)[1]
        self.assertEqual(re.search(pattern, CMAKE)[1], VERSION[1])

    def test_exported_sources_are_enough(self):
        patterns = ast.literal_eval(re.search(r"(?s)for pattern in (\(.*?\)):", self.source)[1])
        for pattern in patterns:
            self.assertTrue(list(ROOT.glob(pattern)), pattern)
        # What CMakeLists.txt reads when it is built so.
        for path in ("CMakeLists.txt", "cmake/exports.map", "lib/zkasio/client.cpp", "examples/zklock/CMakeLists.txt",
                     "docs/zklock.schema.json"):
            self.assertTrue(any(path == pattern or path.startswith(pattern.rstrip("*")) for pattern in patterns), path)

    def test_python_is_python(self):
        for path in (ROOT / "packaging/conan").rglob("*.py"):
            compile(path.read_text(), str(path), "exec")


class Workflow(unittest.TestCase):
    def test_stages_are_those_of_ci_run(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("needs python3-yaml")
        workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
        stages = subprocess.run([ROOT / ".ci/run", "--list"], check=True, capture_output=True, text=True).stdout.split()
        (job,) = workflow["jobs"].values()
        self.assertEqual(job["strategy"]["matrix"]["stage"], stages)
        self.assertEqual([step["run"] for step in job["steps"] if "run" in step], [".ci/run ${{ matrix.stage }}"])
        self.assertEqual(job["container"]["image"], "debian:12")


if __name__ == "__main__":
    unittest.main()
