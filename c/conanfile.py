"""A recipe of Conan 2 for coapace.c: conan create c"""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class Coapace(ConanFile):
    name = "coapace"
    version = "0.1.0"
    description = "Congestion control for CoAP (RFC 7252) in C99"
    license = "MIT OR Apache-2.0"
    url = "https://github.com/coapace/coapace"
    settings = "os", "arch", "compiler", "build_type"
    languages = "C"
    generators = "CMakeToolchain", "CMakeDeps"
    exports_sources = "CMakeLists.txt", "*.c", "*.h"

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["coapace"]
