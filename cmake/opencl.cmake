# Writes OUT, a C file with the kernels of FOLDER as strings: cmake -DFOLDER=src/device/opencl/kernels -DOUT=... -P opencl.cmake
include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
file(GLOB paths ${FOLDER}/*.cl)
list(SORT paths)
set(arrays "")
set(rows "")
set(number 0)
foreach(path ${paths})
    cmake_path(GET path FILENAME name)
    psld_bytes(${path} bytes)
    string(APPEND arrays "static const char text_${number}[] = {\n${bytes} 0};\n")
    string(APPEND rows "    {\"${name}\", text_${number}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "/* Written by cmake/opencl.cmake. */
#include \"device/opencl/opencl.h\"

${arrays}
const psld_cl_source psld_cl_sources[] = {
${rows}    {0, 0},
};
")
