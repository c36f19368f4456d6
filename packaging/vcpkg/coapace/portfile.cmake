# coapace.c as a port of vcpkg, from this repository: vcpkg install coapace --overlay-ports=packaging/vcpkg
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
vcpkg_cmake_configure(SOURCE_PATH "${root}/c")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME coapace CONFIG_PATH lib/cmake/coapace)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${root}/LICENSE-MIT" "${root}/LICENSE-APACHE")
