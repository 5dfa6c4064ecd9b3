# What cpack has made is packed once more.
#
# It writes maintainer scripts that call ldconfig, which Debian's policy (8.1.1) forbids: there is a trigger for that,
# debian/triggers. And dpkg-deb, unlike cpack, takes no file for younger than SOURCE_DATE_EPOCH: packages of one commit
# are the same, whenever they are made.
foreach(package ${CPACK_PACKAGE_FILES})
    set(tree ${package}.tree)
    file(REMOVE_RECURSE ${tree})
    execute_process(COMMAND dpkg-deb -R ${package} ${tree} COMMAND_ERROR_IS_FATAL ANY)
    file(REMOVE ${tree}/DEBIAN/postinst ${tree}/DEBIAN/postrm)
    execute_process(COMMAND dpkg-deb --root-owner-group -Zxz -b ${tree} ${package} OUTPUT_QUIET
        COMMAND_ERROR_IS_FATAL ANY)
    file(REMOVE_RECURSE ${tree})
endforeach()
