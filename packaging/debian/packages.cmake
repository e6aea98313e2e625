# Debian packages, one for each component of the installation. `scripts/package` builds them; `cpack` in a build folder does
# the same for that build. Included last, after every install() of the tree.
include(GNUInstallDirs)
find_program(HELP2MAN help2man)
find_program(GZIP gzip)
set(here ${CMAKE_CURRENT_SOURCE_DIR}/debian)
set(made ${CMAKE_CURRENT_BINARY_DIR}/debian)

# The version: a tag v1.2.3 that git describes, else the project's with the number of commits.
execute_process(COMMAND ${here}/package-version ${PROJECT_VERSION} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                OUTPUT_VARIABLE package_version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_NAME rocegw)
set(CPACK_PACKAGE_VERSION ${package_version})
set(CPACK_PACKAGE_CONTACT "rocegw maintainers <maintainers@rocegw.io>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL gateway client memory agent controller ctl doc)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
    ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/rocegw-drop-in)

# rocegw_debian_package(COMPONENT NAME DEPENDS RECOMMENDS DESCRIPTION): what dpkg is told. The description's first line is
# the short one.
function(rocegw_debian_package component depends recommends description)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME rocegw-${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_RECOMMENDS "${recommends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DEBUGINFO_PACKAGE ON PARENT_SCOPE)
  install(FILES ${here}/copyright DESTINATION share/doc/rocegw-${component} COMPONENT ${component})
  install(FILES ${made}/changelog.gz DESTINATION share/doc/rocegw-${component} COMPONENT ${component})
  if(EXISTS ${here}/rocegw-${component}.overrides)
    install(FILES ${here}/rocegw-${component}.overrides DESTINATION share/lintian/overrides RENAME rocegw-${component}
            COMPONENT ${component})
  endif()
endfunction()

# rocegw_debian_service(COMPONENT UNIT UPGRADE): scripts of a package that brings a unit and /etc/rocegw/UNIT.yaml. UPGRADE
# is what happens to the running unit then: restart, or keep.
function(rocegw_debian_service component unit upgrade)
  string(TOUPPER ${component} key)
  set(NAME ${unit})
  set(UNIT ${unit}.service)
  set(RESTARTS true)
  if(upgrade STREQUAL keep)
    set(RESTARTS false)
  endif()
  foreach(script postinst prerm postrm)
    configure_file(${here}/${script}.in ${made}/${component}/${script} @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE
                   OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND scripts ${made}/${component}/${script})
  endforeach()
  file(WRITE ${made}/${component}/conffiles "/etc/rocegw/${unit}.yaml\n")
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA "${scripts};${made}/${component}/conffiles" PARENT_SCOPE)
  # Every key with its meaning, none of them set: a later version's default counts where the administrator chose nothing.
  set(config ${made}/${unit}.yaml)
  add_custom_command(OUTPUT ${config} DEPENDS ${unit} ${here}/commented-config VERBATIM
                     COMMAND ${here}/commented-config $<TARGET_FILE:${unit}> ${config})
  rocegw_made_for_packages(${config})
  install(FILES ${config} DESTINATION /etc/rocegw COMPONENT ${component})
endfunction()

# Files that only an installation needs are made by the target `package_files`.
add_custom_target(package_files ALL)
function(rocegw_made_for_packages file)
  string(MAKE_C_IDENTIFIER ${file} name)
  add_custom_target(make${name} DEPENDS ${file})
  add_dependencies(package_files make${name})
endfunction()

# rocegw_debian_manual(COMPONENT PROGRAM SECTION TITLE [OPTION]): a manual page out of the program's --help, or of OPTION
# that shows the help of subcommands as well.
function(rocegw_debian_manual component program section title)
  set(help --help)
  if(ARGN)
    set(help ${ARGN})
  endif()
  set(page ${made}/${program}.${section})
  add_custom_command(OUTPUT ${page}.gz DEPENDS ${program} ${here}/manual.h2m VERBATIM
    COMMAND ${HELP2MAN} --no-info --no-discard-stderr --help-option=${help} --version-string=${PROJECT_VERSION} --section=${section}
            --name=${title} --include=${here}/manual.h2m --output=${page} $<TARGET_FILE:${program}>
    COMMAND ${GZIP} -9nf ${page})
  rocegw_made_for_packages(${page}.gz)
  install(FILES ${page}.gz DESTINATION share/man/man${section} COMPONENT ${component})
endfunction()

file(WRITE ${made}/changelog.text "rocegw (${package_version}) bookworm; urgency=medium\n\n  * See CHANGELOG.md in \
rocegw-doc.\n\n -- rocegw maintainers <maintainers@rocegw.io>  Thu, 26 Nov 2026 00:00:00 +0000\n")
execute_process(COMMAND ${GZIP} -9nc ${made}/changelog.text OUTPUT_FILE ${made}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)

# DPDK loads its drivers at run time, so that dpkg-shlibdeps sees no need of them. The name of the package of the driver for
# DSA has the number of DPDK's interface.
set(gateway_recommends "rocegw-client, rocegw-ctl")
if(ROCEGW_WITH_DPDK)
  file(GLOB dsa_driver LIST_DIRECTORIES false ${DPDK_LIBRARY_DIRS}/librte_dma_idxd.so.?? /usr/lib/*/librte_dma_idxd.so.??)
  if(dsa_driver MATCHES "librte_dma_idxd[.]so[.]([0-9]+)")
    string(APPEND gateway_recommends ", librte-dma-idxd${CMAKE_MATCH_1}")
    set(CPACK_DEBIAN_GATEWAY_PACKAGE_SUGGESTS "librte-dma-skeleton${CMAKE_MATCH_1}")
  endif()
endif()
rocegw_debian_package(gateway "" "${gateway_recommends}" "RDMA gateway: RoCEv2 for hosts without RDMA hardware
The daemon rocegwd terminates RoCEv2 in user space, over kernel UDP sockets or
DPDK, for programs that were written for libibverbs and librdmacm.")
rocegw_debian_package(client "" "" "runs verbs programs on an RDMA gateway
rocegw-run starts unmodified programs that use libibverbs or librdmacm on
the gateway of this host. Contains the library that it preloads, the drop-in
pair of libibverbs and librdmacm, the gateway that runs inside of a program,
and rocegwdv.h.")
rocegw_debian_package(memory "" "rocegw-client, fuse3, nbdkit" "memory of other hosts by RDMA
rocegw-memory offers memory of a host, or keeps files and swap in the memory of
other hosts, with replicas, through any verbs device. A C library reads and
writes such memory from programs.")
rocegw_debian_package(agent "rocegw-client" "rocegw-gateway, python3" "keeps an RDMA gateway as its fleet wants it
The agent of each host of a fleet: it joins the fleet, applies tenants, pools
and policies to the gateway, and is the device plugin on Kubernetes nodes.")
rocegw_debian_package(controller "systemd | systemd-standalone-sysusers | systemd-sysusers" "rocegw-ctl"
  "control plane of a fleet of RDMA gateways
Tenants, quotas, pools of queue pairs, congestion policies and drains of all
gateways, with an authority of its own and a store in SQLite or etcd.")
rocegw_debian_package(ctl "" "" "command line of RDMA gateways and their controller
rocegwctl operates a fleet of gateways, or looks into the one of this host.")
rocegw_debian_package(doc "" "" "documentation of the RDMA gateway rocegw
Guides, reference, runbooks, dashboards, and a dissector for Wireshark.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_DEBUGINFO_PACKAGE OFF)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS "ibverbs-utils, perftest, rdmacm-utils")

# A new gateway ends the queue pairs of its host: the administrator says when.
rocegw_debian_service(gateway rocegwd keep)
rocegw_debian_service(agent rocegw-agent restart)
rocegw_debian_service(controller rocegw-controller restart)

rocegw_debian_manual(gateway rocegwd 8 "RDMA gateway")
rocegw_debian_manual(agent rocegw-agent 8 "keeps an RDMA gateway as its controller wants it")
rocegw_debian_manual(agent rocegw-probe 8 "one end of a connectivity test between RDMA gateways")
rocegw_debian_manual(controller rocegw-controller 8 "control plane of RDMA gateways")
rocegw_debian_manual(client rocegw-run 1 "runs a verbs program on an RDMA gateway")
rocegw_debian_manual(memory rocegw-memory 1 "memory of other hosts by RDMA" --help-all)
rocegw_debian_manual(ctl rocegwctl 1 "operates RDMA gateways")
file(GLOB pages ${CMAKE_SOURCE_DIR}/docs/reference/man/*.3)
foreach(page ${pages})
  get_filename_component(name ${page} NAME)
  execute_process(COMMAND ${GZIP} -9nc ${page} OUTPUT_FILE ${made}/${name}.gz COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${made}/${name}.gz DESTINATION share/man/man3 COMPONENT client)
endforeach()

execute_process(COMMAND ${GZIP} -9nc ${CMAKE_SOURCE_DIR}/docs/reference/man/rocegw_memory.7
                OUTPUT_FILE ${made}/rocegw_memory.7.gz COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${made}/rocegw_memory.7.gz DESTINATION share/man/man7 COMPONENT memory)

foreach(shell bash zsh)
  set(script ${made}/completion.${shell})
  add_custom_command(OUTPUT ${script} DEPENDS rocegwctl VERBATIM
                     COMMAND sh -c "\"$0\" completion ${shell} > \"$1\"" $<TARGET_FILE:rocegwctl> ${script})
  rocegw_made_for_packages(${script})
endforeach()
install(FILES ${made}/completion.bash DESTINATION share/bash-completion/completions RENAME rocegwctl COMPONENT ctl)
install(FILES ${made}/completion.zsh DESTINATION share/zsh/vendor-completions RENAME _rocegwctl COMPONENT ctl)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION share/doc/rocegw-doc/docs COMPONENT doc PATTERN man EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/dashboards/ DESTINATION share/doc/rocegw-doc/dashboards COMPONENT doc
        FILES_MATCHING PATTERN *.json PATTERN *.yaml PATTERN *.yml)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/rocegw-doc
        COMPONENT doc)

include(CPack)
