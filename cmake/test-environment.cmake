# What every test finds in its environment. ctest includes this file each time it runs.

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH source_dir)
set(ENV{PSLD_SOURCE} "${source_dir}")

# A second, larger set of golden files beside those of tests/golden; tests that want what only it has skip without it.
if(NOT DEFINED ENV{PSLD_GOLDEN})
    cmake_path(SET golden NORMALIZE "${source_dir}/../shared/golden")
    if(IS_DIRECTORY "${golden}")
        set(ENV{PSLD_GOLDEN} "${golden}")
    endif()
endif()

# A size that cannot be had must come back as NULL, as it does without sanitizers.
set(ENV{ASAN_OPTIONS} "allocator_may_return_null=1:detect_stack_use_after_return=1")
set(ENV{LSAN_OPTIONS} "suppressions='${CMAKE_CURRENT_LIST_DIR}/leaks.supp':print_suppressions=0")
set(ENV{UBSAN_OPTIONS} "print_stacktrace=1")
set(ENV{TSAN_OPTIONS} "allocator_may_return_null=1:halt_on_error=1:suppressions='${CMAKE_CURRENT_LIST_DIR}/races.supp'")
