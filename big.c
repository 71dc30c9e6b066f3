#include <tiffio.h>
#include <stdlib.h>
int main(){unsigned W=6000,H=4000;TIFF*t=TIFFOpen("/tmp/ffz/big.tif","w");TIFFSetField(t,TIFFTAG_IMAGEWIDTH,W);TIFFSetField(t,TIFFTAG_IMAGELENGTH,H);TIFFSetField(t,TIFFTAG_BITSPERSAMPLE,8);TIFFSetField(t,TIFFTAG_SAMPLESPERPIXEL,3);TIFFSetField(t,TIFFTAG_PHOTOMETRIC,2);TIFFSetField(t,TIFFTAG_COMPRESSION,5);TIFFSetField(t,TIFFTAG_ROWSPERSTRIP,H);
unsigned char*r=malloc(W*3);for(unsigned y=0;y<H;y++){for(unsigned i=0;i<W*3;i++)r[i]=(i*y>>8)&255;TIFFWriteScanline(t,r,y,0);}TIFFClose(t);}
