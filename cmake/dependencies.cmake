# What the libraries stand on; docs/explanation/dependencies.md says why each. For X = core and full: psld_X_dependencies to compile
# with, PSLD_X_MODULES known to pkg-config, PSLD_X_LINK to link with. Full includes core. Imported targets count as system
# headers, so our warnings do not apply to them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# Headers alone, without a pkg-config file.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)

# psld_depend_on(X MODULE...). Libraries that are loaded when they are first needed: OpenCL (src/device/opencl/), OpenBLAS
# (src/eval/blas.c).
function(psld_depend_on library)
    set(link Threads::Threads ${CMAKE_DL_LIBS} m)
    foreach(module ${ARGN})
        pkg_check_modules(${module} REQUIRED IMPORTED_TARGET GLOBAL ${module})
        list(APPEND link PkgConfig::${module})
    endforeach()
    set(PSLD_${library}_MODULES ${ARGN} PARENT_SCOPE)
    set(PSLD_${library}_LINK ${link} PARENT_SCOPE)
    add_library(psld_${library}_dependencies INTERFACE)
    target_link_libraries(psld_${library}_dependencies INTERFACE ${link})
    target_include_directories(psld_${library}_dependencies SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})
endfunction()

set(core yaml-0.1 jansson zlib)
psld_depend_on(core ${core})
if(PSLD_CORE)
    return()
endif()

# MPI where it is installed: training on several machines. OpenMPI's own description, or the one of Debian's choice.
option(PSLD_MPI "Train and sample on several ranks, if MPI is found" ON)
set(mpi)
foreach(module ompi-c mpi-c)
    if(PSLD_MPI AND NOT mpi)
        pkg_check_modules(${module} QUIET ${module})
        if(${module}_FOUND)
            set(mpi ${module})
        endif()
    endif()
endforeach()
option(PSLD_ARCHIVES "Read tar archives, by libarchive" ON)
set(archives)
if(PSLD_ARCHIVES)
    set(archives libarchive)
endif()
psld_depend_on(full ${core} cairo libpng libjpeg libwebp libwebpdemux ${archives} ${mpi})
if(PSLD_ARCHIVES)
    target_compile_definitions(psld_full_dependencies INTERFACE PSLD_ARCHIVES)
endif()
if(mpi)
    target_compile_definitions(psld_full_dependencies INTERFACE PSLD_MPI)
endif()
# The server of the program alone.
option(PSLD_SERVE "Build psld serve, if libmicrohttpd is found" ON)
if(PSLD_SERVE)
    pkg_check_modules(PSLD_HTTP QUIET IMPORTED_TARGET libmicrohttpd>=0.9.73)
endif()
