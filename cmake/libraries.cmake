# The two libraries, each shared and static, and their installation. The core (libpsld) has what it takes to use models;
# the full one (libpsld-full) is the core and all the rest, so that a program links one of them. docs/explanation/design.md says why.

# An incompatible version has another first or second number, so another soname.
set(PSLD_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# src/LAYER/*.c and one level below it (nn/ops, kernels/ref).
file(GLOB sources CONFIGURE_DEPENDS src/*/*.c src/*/*/*.c)
set(core_sources ${sources})
list(FILTER core_sources INCLUDE REGEX "/src/(base|io/files|io/tensors|io/yaml|process|kernels|device|nn|sample|model)/")
list(REMOVE_ITEM sources ${core_sources})
# Compiled once for each instruction set.
set(simd_sources ${core_sources})
list(FILTER simd_sources INCLUDE REGEX "/src/kernels/simd/")
list(REMOVE_ITEM core_sources ${simd_sources})

# OpenCL devices where the headers are installed; the library itself is loaded at run time. The kernels are within ours.
option(PSLD_OPENCL "Run on OpenCL devices, if the headers of OpenCL are found" ON)
if(PSLD_OPENCL)
    find_path(PSLD_OPENCL_INCLUDE_DIR CL/cl_icd.h)
endif()
if(PSLD_OPENCL AND PSLD_OPENCL_INCLUDE_DIR)
    foreach(library core full)
        if(TARGET psld_${library}_dependencies)
            target_include_directories(psld_${library}_dependencies SYSTEM INTERFACE ${PSLD_OPENCL_INCLUDE_DIR})
        endif()
    endforeach()
    file(GLOB kernels CONFIGURE_DEPENDS src/device/opencl/kernels/*.cl)
    add_custom_command(
        OUTPUT opencl_sources.c
        COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/src/device/opencl/kernels -DOUT=opencl_sources.c
                -P ${PROJECT_SOURCE_DIR}/cmake/opencl.cmake
        DEPENDS ${kernels} ${PROJECT_SOURCE_DIR}/cmake/opencl.cmake ${PROJECT_SOURCE_DIR}/cmake/bytes.cmake
        COMMENT "Writing the kernels of OpenCL devices"
        VERBATIM)
    list(FILTER core_sources EXCLUDE REGEX "/src/device/opencl/absent.c")
    list(APPEND core_sources ${PROJECT_BINARY_DIR}/opencl_sources.c)
else()
    list(FILTER core_sources EXCLUDE REGEX "/src/device/opencl/")
    list(APPEND core_sources ${PROJECT_SOURCE_DIR}/src/device/opencl/absent.c
         ${PROJECT_SOURCE_DIR}/src/device/opencl/vendors.c)
endif()

# psld_add_objects(TARGET LIBRARY SOURCE...)
function(psld_add_objects target library)
    add_library(${target} OBJECT ${ARGN})
    target_include_directories(${target} PRIVATE include src)
    target_link_libraries(${target} PRIVATE psld_flags psld_${library}_dependencies)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
endfunction()

# The .pc files find their prefix from where they lie: PREFIX and DESTDIR may be chosen after the build.
set(root /)
cmake_path(RELATIVE_PATH root BASE_DIRECTORY /${CMAKE_INSTALL_LIBDIR}/pkgconfig OUTPUT_VARIABLE PSLD_PC_TO_PREFIX)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/psld)

# psld_install_library(NAME SHARED STATIC HEADER...): component libNAME has what programs need to run, libNAME-dev what
# they need to be compiled.
function(psld_install_library name shared static)
    install(TARGETS ${shared} EXPORT ${name}-shared LIBRARY COMPONENT lib${name} NAMELINK_COMPONENT lib${name}-dev)
    install(TARGETS ${static} EXPORT ${name}-static ARCHIVE COMPONENT lib${name}-dev)
    foreach(kind shared static)
        install(EXPORT ${name}-${kind} NAMESPACE psld:: DESTINATION ${package_dir} COMPONENT lib${name}-dev)
    endforeach()
    install(FILES ${ARGN} TYPE INCLUDE COMPONENT lib${name}-dev)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
            COMPONENT lib${name}-dev)
endfunction()

# psld_add_libraries(LIBRARY NAME SHARED STATIC OBJECTS...): libNAME.so and libNAME.a of these object libraries.
function(psld_add_libraries library name shared static)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
    add_library(${static} STATIC ${objects})
    add_library(${shared} SHARED ${objects})
    foreach(target ${static} ${shared})
        target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        target_link_libraries(${target} PRIVATE ${PSLD_${library}_LINK})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
    endforeach()
    target_link_libraries(${shared} PRIVATE psld_flags)
    set_target_properties(${shared} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PSLD_SOVERSION})

    # Debian's libarchive.pc asks static links for libraries whose development files it does not bring along.
    list(JOIN PSLD_${library}_MODULES " " PSLD_PC_PRIVATE)
    set(PSLD_PC_LIBS_PRIVATE "-pthread -ldl -lm")
    if("libarchive" IN_LIST PSLD_${library}_MODULES)
        string(REPLACE "libarchive" "" PSLD_PC_PRIVATE "${PSLD_PC_PRIVATE}")
        string(PREPEND PSLD_PC_LIBS_PRIVATE "-larchive ")
    endif()
    set(PSLD_PC_NAME ${name})
    configure_file(cmake/psld.pc.in ${name}.pc @ONLY)
endfunction()

# ---- The core ------------------------------------------------------------------------------------------------------

psld_add_objects(psld_objects core ${core_sources})
set(core_objects psld_objects)
psld_read_instruction_sets(PSLD_SETS)
foreach(set ${PSLD_SETS})
    psld_add_objects(psld_${set}_objects core ${simd_sources})
    target_compile_options(psld_${set}_objects PRIVATE ${PSLD_OPTIONS_${set}})
    psld_for_instruction_set(psld_${set}_objects ${set})
    list(APPEND core_objects psld_${set}_objects)
endforeach()
psld_add_libraries(core psld psld_shared psld_static ${core_objects})
set_target_properties(psld_shared PROPERTIES EXPORT_NAME psld)
set_target_properties(psld_static PROPERTIES EXPORT_NAME static)
add_library(psld::psld ALIAS psld_shared)
add_library(psld::static ALIAS psld_static)
psld_install_library(psld psld_shared psld_static include/psld.h)

list(JOIN PSLD_core_MODULES " " PSLD_CORE_MODULES)
list(JOIN PSLD_full_MODULES " " PSLD_FULL_MODULES)
configure_package_config_file(cmake/psldConfig.cmake.in psldConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(psldConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/psldConfig.cmake ${PROJECT_BINARY_DIR}/psldConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT libpsld-dev)

# ---- The full library ----------------------------------------------------------------------------------------------

if(NOT PSLD_CORE)
    psld_add_objects(psld_full_objects full ${sources})
    set(full_objects ${core_objects} psld_full_objects)
    psld_add_libraries(full psld-full psld_full_shared psld_full_static ${full_objects})
    set_target_properties(psld_full_shared PROPERTIES EXPORT_NAME full)
    set_target_properties(psld_full_static PROPERTIES EXPORT_NAME full_static)
    add_library(psld::full ALIAS psld_full_shared)
    add_library(psld::full_static ALIAS psld_full_static)
    file(GLOB headers CONFIGURE_DEPENDS include/psld_*.h)
    psld_install_library(psld-full psld_full_shared psld_full_static ${headers})

    # For tests, benchmarks and fuzz targets, which may look inside: the library with its private headers.
    add_library(psld_inside INTERFACE)
    target_include_directories(psld_inside INTERFACE src)
    target_link_libraries(psld_inside INTERFACE psld_full_static psld_flags psld_full_dependencies)
endif()
