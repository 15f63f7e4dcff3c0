# check_portable.cmake: CPack reads it before it packs.
if(CPACK_QRTOOL_NATIVE)
  message(FATAL_ERROR "This build is for the processor of this machine. A package must run on others: "
                      "cmake --preset package && cmake --build --preset package --target package")
endif()
