# zkasio::gssapi: MIT's GSSAPI library with Kerberos 5, libgssapi_krb5 (Debian: libkrb5-dev).
include(FindPackageHandleStandardArgs)
find_path(ZkasioGssapi_INCLUDE_DIR gssapi/gssapi_krb5.h PATH_SUFFIXES mit-krb5)
find_library(ZkasioGssapi_LIBRARY gssapi_krb5 PATH_SUFFIXES mit-krb5)
find_package_handle_standard_args(ZkasioGssapi REQUIRED_VARS ZkasioGssapi_LIBRARY ZkasioGssapi_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "MIT's libgssapi_krb5 is needed (Debian: apt install libkrb5-dev)")
if(ZkasioGssapi_FOUND AND NOT TARGET zkasio::gssapi)
    add_library(zkasio::gssapi UNKNOWN IMPORTED)
    set_target_properties(zkasio::gssapi PROPERTIES
        IMPORTED_LOCATION "${ZkasioGssapi_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${ZkasioGssapi_INCLUDE_DIR}")
endif()
mark_as_advanced(ZkasioGssapi_INCLUDE_DIR ZkasioGssapi_LIBRARY)
