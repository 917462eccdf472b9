# Writes OUT, a C file with the files of FOLDER as arrays: cmake -DFOLDER=web -DOUT=serve_web.c -P web.cmake
include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
file(GLOB paths ${FOLDER}/*)
list(SORT paths)
set(arrays "")
set(rows "")
set(number 0)
foreach(path ${paths})
    cmake_path(GET path FILENAME name)
    file(SHA256 ${path} hash)
    string(SUBSTRING ${hash} 0 16 tag)
    file(SIZE ${path} size)
    psld_bytes(${path} bytes)
    string(APPEND arrays "static const unsigned char file_${number}[] = {\n${bytes} 0};\n")
    string(APPEND rows "    {\"${name}\", \"\\\"${tag}\\\"\", file_${number}, ${size}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "/* Written by cmake/web.cmake. */
#include \"serve_web.h\"

${arrays}
const serve_web_file serve_web_files[] = {
${rows}    {0, 0, 0, 0},
};
")
