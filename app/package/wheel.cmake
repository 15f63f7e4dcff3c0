# wheel.cmake: what a wheel holds beside the Python package. scikit-build-core, which pyproject.toml names, sets SKBUILD.
if(NOT SKBUILD)
  return()
endif()

install(PROGRAMS $<TARGET_FILE:qrtool> DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
# A wheel has no symbolic links: the library has the name that the package looks for.
install(FILES $<TARGET_FILE:qrtool_capi> RENAME libqrtool.so.1 DESTINATION qrtool COMPONENT wheel)

# The licences of what wheel.sh bundles, and of what is compiled in, as Debian's packages state them.
set(bundled libaec-dev libbz2-1.0 libeigen3-dev libboost-dev libcli11-dev libfast-float-dev libfmt-dev libgomp1
  libdeflate0 libssl1.1 libstdc++-12-dev libzip4 nlohmann-json3-dev ocl-icd-libopencl1 opencl-clhpp-headers zlib1g)
foreach(package ${bundled})
  list(APPEND licences ${CMAKE_FIND_ROOT_PATH}/usr/share/doc/${package}/copyright ${package})
endforeach()
list(APPEND licences ${HDF5_ROOT}/COPYING hdf5)
while(licences)
  list(POP_FRONT licences licence package)
  if(EXISTS ${licence})
    install(FILES ${licence} RENAME ${package}.txt DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT wheel)
  else()
    message(STATUS "No ${licence}: the wheel will not have this licence")
  endif()
endwhile()
