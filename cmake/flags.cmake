# How all of our C is compiled: link with psld_flags.

get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT multi_config)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

# Neither errno nor floating-point traps are ever looked at, and both keep loops from being vectorised. The results
# are the same bits with and without.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG -fno-math-errno -fno-trapping-math")
# For the sanitizers: fast enough, asserts live, stack traces whole.
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(psld_flags INTERFACE)
target_compile_definitions(psld_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
target_compile_options(psld_flags INTERFACE
    # A fused multiply-add where the compiler feels like one would make the bits depend on it and on the CPU.
    -ffp-contract=off
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    # float to double by accident; clang would also warn of double to long double, which kernels are computed in
    $<$<C_COMPILER_ID:GNU>:-Wdouble-promotion>
    -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2)

if(PSLD_SANITIZE)
    target_compile_options(psld_flags INTERFACE -fsanitize=${PSLD_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(psld_flags INTERFACE -fsanitize=${PSLD_SANITIZE})
else()
    # The sanitizers leave symbols to be found at run time; everybody else resolves all of them now.
    target_link_options(psld_flags INTERFACE -Wl,--no-undefined -Wl,--as-needed)
endif()

if(PSLD_FUZZ)
    target_compile_options(psld_flags INTERFACE -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping)
    target_link_options(psld_flags INTERFACE -fprofile-instr-generate)
endif()

if(PSLD_COVERAGE)
    target_compile_options(psld_flags INTERFACE --coverage)
    target_link_options(psld_flags INTERFACE --coverage)
endif()

# psld_read_instruction_sets(SETS): the rows of src/kernels/sets.def for this processor, as "name;options" with names in
# SETS and options in PSLD_OPTIONS_<name>.
function(psld_read_instruction_sets sets)
    set(file ${PROJECT_SOURCE_DIR}/src/kernels/sets.def)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    execute_process(COMMAND ${CMAKE_C_COMPILER} -E -P -x c ${file} OUTPUT_VARIABLE rows COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "PSLD_SET\\([^)]*\\)" rows "${rows}")
    foreach(row ${rows})
        string(REGEX REPLACE "PSLD_SET\\(([a-z0-9]+), *\"([^\"]*)\"\\)" "\\1" name "${row}")
        string(REGEX REPLACE "PSLD_SET\\(([a-z0-9]+), *\"([^\"]*)\"\\)" "\\2" options "${row}")
        separate_arguments(options UNIX_COMMAND "${options}")
        list(APPEND names ${name})
        set(PSLD_OPTIONS_${name} ${options} PARENT_SCOPE)
    endforeach()
    set(${sets} ${names} PARENT_SCOPE)
endfunction()

# psld_for_instruction_set(TARGET SET): TARGET sees the names and headers of kernels/simd as those of SET.
function(psld_for_instruction_set target set)
    target_compile_definitions(${target} PRIVATE SIMD_SET=${set} SIMD_VEC_H="kernels/simd/${set}/vec.h"
                                                 SIMD_TILE_H="kernels/simd/${set}/tile.h")
    if(PSLD_SANITIZE)
        target_compile_definitions(${target} PRIVATE SIMD_SANITIZED)
    endif()
    # Following every variable of unrolled kernels takes gcc longer than compiling them.
    target_compile_options(${target} PRIVATE $<$<C_COMPILER_ID:GNU>:-fno-var-tracking>)
    if(EXISTS ${PROJECT_SOURCE_DIR}/src/kernels/simd/${set}/dot.h) # products of 16-bit factors of its own
        target_compile_definitions(${target} PRIVATE SIMD_DOT_H="kernels/simd/${set}/dot.h")
    endif()
endfunction()
