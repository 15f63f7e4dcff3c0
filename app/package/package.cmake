# package.cmake: Debian packages of the tool (target package) and a tarball of its sources (source).

set(QRTOOL_MAINTAINER "the qrtool developers <qrtool@localhost>" CACHE STRING
    "Maintainer field of Debian packages")

# Debian's zsh looks into vendor-completions; zsh's own place is site-functions.
set(QRTOOL_ZSH_DIR "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" CACHE STRING
    "Where completion for zsh is installed")
install(FILES app/package/_qrtool DESTINATION ${QRTOOL_ZSH_DIR})
# bash and fish load a file by the name of the command.
foreach(command qrtool qrtool-mpi)
  install(FILES app/package/qrtool.fish RENAME ${command}.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES app/package/qrtool.bash RENAME ${command}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endforeach()
# Python looks for packages in other places on every system.
set(QRTOOL_PYTHON_DIR "" CACHE STRING "Where the Python package is installed; empty: nowhere")
if(QRTOOL_PYTHON_DIR)
  install(DIRECTORY app/python/qrtool DESTINATION ${QRTOOL_PYTHON_DIR} PATTERN __pycache__ EXCLUDE)
endif()
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md BENCHMARKS.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY samples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/qrtool/samples
        PATTERN "*.sh" EXCLUDE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME qrtool)
set(CPACK_PACKAGE_VENDOR "the qrtool developers")
set(CPACK_PACKAGE_CONTACT "${QRTOOL_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "checked QR factors and least squares for files of matrices")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
# Read by check_portable.cmake.
set(CPACK_QRTOOL_NATIVE ${QRTOOL_NATIVE})
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/app/package/check_portable.cmake)

# The program over MPI needs a large library, so that it is a package of its own.
set(CPACK_COMPONENTS_ALL Unspecified)
if(TARGET qrtool-mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME qrtool)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/app/package/prerm)
set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION
"qrtool reads a file of matrices (HDF5, NumPy, CSV, Matrix Market), factors
every matrix into Q and R or solves least squares with it, and writes the
results with the measured error of each. It runs on the CPU, and on a GPU
through OpenCL where there is one.")
# OpenCL on the CPU, for those who want to try it.
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS "pocl-opencl-icd, python3-numpy, python3-h5py, gnuplot-nox")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME qrtool-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "qrtool (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_COMPONENT_MPI_DESCRIPTION
"qrtool-mpi shares the matrices of qrtool, or the rows of one tall matrix,
among the processes that mpirun starts.")
include(CPack)

# What git knows of, as it was committed last: the same bytes for the same commit.
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  set(name qrtool-${PROJECT_VERSION})
  add_custom_target(source
    COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} archive --format=tar.gz --prefix=${name}/
            -o ${PROJECT_BINARY_DIR}/${name}.tar.gz HEAD
    COMMENT "Writing ${PROJECT_BINARY_DIR}/${name}.tar.gz"
    VERBATIM)
endif()
