# An overlay port: it builds the checkout that it is in.
#
#     vcpkg install "zkasio[json]" --overlay-ports=packaging/vcpkg/ports
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        json ZKASIO_JSON
        kerberos ZKASIO_KERBEROS
        prometheus ZKASIO_PROMETHEUS
        sasl ZKASIO_SASL
        testing ZKASIO_TESTING
        tls ZKASIO_TLS
        zklock ZKASIO_ZKLOCK
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DZKASIO_TESTS=OFF
        -DZKASIO_EXAMPLES=OFF
        -DZKASIO_BENCHMARKS=OFF
        -DZKASIO_INSTALL=ON
        ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/zkasio)
vcpkg_fixup_pkgconfig()
if("zklock" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES zklock AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
