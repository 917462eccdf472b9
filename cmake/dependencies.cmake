# What the library stands on: psld_dependencies to compile with, PSLD_LINK_LIBRARIES to link with; docs/dependencies.md
# says why each. Imported targets count as system headers, so our warnings do not apply to them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(PSLD_PC_MODULES cairo libpng libjpeg libwebp libwebpdemux libarchive yaml-0.1 jansson zlib openblas lapacke)
set(PSLD_LINK_LIBRARIES Threads::Threads m)
foreach(module ${PSLD_PC_MODULES})
    pkg_check_modules(${module} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    list(APPEND PSLD_LINK_LIBRARIES PkgConfig::${module})
endforeach()

# Headers alone, without a pkg-config file.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)

add_library(psld_dependencies INTERFACE)
target_link_libraries(psld_dependencies INTERFACE ${PSLD_LINK_LIBRARIES})
target_include_directories(psld_dependencies SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})
