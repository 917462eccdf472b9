# What the library needs: psld_dependencies to compile with, PSLD_LINK_LIBRARIES to link with.
# docs/explanation/dependencies.md says why each. Imported targets count as system headers, so our warnings do not apply to them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(PSLD_PC_MODULES cairo libpng libjpeg libwebp libwebpdemux libarchive yaml-0.1 jansson zlib)
# MPI where it is installed: training on several machines. OpenMPI's own description, or the one of Debian's choice.
option(PSLD_MPI "Train and sample on several ranks, if MPI is found" ON)
foreach(module ompi-c mpi-c)
    if(PSLD_MPI AND NOT PSLD_MPI_MODULE)
        pkg_check_modules(${module} QUIET ${module})
        if(${module}_FOUND)
            set(PSLD_MPI_MODULE ${module})
            list(APPEND PSLD_PC_MODULES ${module})
            set_source_files_properties(src/train/ranks_mpi.c PROPERTIES COMPILE_DEFINITIONS PSLD_MPI)
        endif()
    endif()
endforeach()
# OpenBLAS is loaded when evaluation first needs it (src/eval/blas.c).
set(PSLD_LINK_LIBRARIES Threads::Threads m ${CMAKE_DL_LIBS})
foreach(module ${PSLD_PC_MODULES})
    pkg_check_modules(${module} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    list(APPEND PSLD_LINK_LIBRARIES PkgConfig::${module})
endforeach()

# Headers alone, without a pkg-config file.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)

add_library(psld_dependencies INTERFACE)
target_link_libraries(psld_dependencies INTERFACE ${PSLD_LINK_LIBRARIES})
target_include_directories(psld_dependencies SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})
